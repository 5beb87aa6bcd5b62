# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`opens.py MAJOR:MINOR… -- CONTAINER…` on a host: what the kernel says to a process of each container's cgroup that
opens these devices, as JSON. ENXIO: it may, and no driver is there. EPERM: it may not.

It knows how LXC names cgroups, and nothing of the collection.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import stat
import sys
import tempfile


def answer(procs, device, folder):
    """The name of the error that open() gives in the cgroup with this cgroup.procs."""
    major, minor = map(int, device.split(":"))
    path = os.path.join(folder, device)
    if not os.path.exists(path):
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    child = os.fork()
    if child == 0:
        with open(procs, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        try:
            os.open(path, os.O_RDWR)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return errno.errorcode.get(code, "opened")


def main(words):
    devices, names = words[: words.index("--")], words[words.index("--") + 1 :]
    found = {}
    # a file system on which devices open
    with tempfile.TemporaryDirectory(dir="/dev") as folder:
        for name in names:
            places = ("/sys/fs/cgroup", "/sys/fs/cgroup/devices", "/sys/fs/cgroup/unified")
            procs = [path for place in places for path in glob.glob(f"{place}/lxc.payload.{name}/cgroup.procs")]
            assert procs, f"{name} has no cgroup"
            # on a machine with two hierarchies the stricter counts: it has to be in both
            found[name] = {device: answer(procs[0], device, folder) for device in devices}
    print(json.dumps(found))


main(sys.argv[1:])
