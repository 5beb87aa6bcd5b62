# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that tests put into cgroups: what the kernel lets it open and make, and a device that it holds.

Speaks JSON, a line a question, on its standard input and output.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys

R, W, M = 2, 4, 1
FLAGS = {R: os.O_RDONLY, W: os.O_WRONLY, R | W: os.O_RDWR}
MODES = {"b": stat.S_IFBLK, "c": stat.S_IFCHR}


def asked(folder, kind, major, minor, bits):
    """Whether one open() or mknod() passes the device cgroup."""
    try:
        if bits == M:
            path = f"{folder}/made-{os.getpid()}"
            os.mknod(path, MODES[kind] | 0o600, os.makedev(major, minor))
            os.unlink(path)
        else:
            os.close(os.open(f"{folder}/{kind}{major}-{minor}", FLAGS[bits] | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.EPERM:
            return False
        # no driver behind the number: the cgroup let it pass
        if error.errno not in (errno.ENXIO, errno.ENODEV, errno.EIO, errno.EBUSY, errno.EROFS, errno.ENOMEDIUM):
            raise
    return True


def main():
    folder, held = sys.argv[1], {}
    for line in sys.stdin:
        what, *more = json.loads(line)
        if what == "enter":
            with open(os.path.join(more[0], "cgroup.procs"), "w", encoding="ascii") as processes:
                processes.write("0")
            answer = True
        elif what == "ask":
            answer = [asked(folder, *question) for question in more[0]]
        elif what == "hold":
            held[more[0]] = os.open(f"{folder}/{more[0]}", os.O_RDWR)
            answer = True
        elif what == "read":
            answer = len(os.read(held[more[0]], 16))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
