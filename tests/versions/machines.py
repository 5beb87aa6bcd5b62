# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for each Python: the root of the Debian or Ubuntu release that has it, and commands run in there.

Debian's and Ubuntu's mirrors are all it takes. No release of Debian has Python 3.8, 3.10 or 3.12, three of Ubuntu have.
Roots are kept in the user's cache folder, and are read-only to what runs in them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
DEBIAN = ("http://deb.debian.org/debian", "main")
UBUNTU = ("http://archive.ubuntu.com/ubuntu", "main,universe")
#: Python: (name for people, suite, mirror and components)
RELEASES = {
    "3.8": ("Ubuntu 20.04", "focal", *UBUNTU),
    "3.9": ("Debian 11", "bullseye", *DEBIAN),
    "3.10": ("Ubuntu 22.04", "jammy", *UBUNTU),
    "3.11": ("Debian 12", "bookworm", *DEBIAN),
    "3.12": ("Ubuntu 24.04", "noble", *UBUNTU),
    "3.13": ("Debian 13", "trixie", *DEBIAN),
    "3.14": ("Ubuntu 26.04", "resolute", *UBUNTU),
}
#: Debian 13 has the keys that Ubuntu's mirror is signed with, and itself is signed with keys that Debian 12 has.
KEEPS_KEYS = "3.13"
KEYS = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
#: What PATH is in there.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# $1 root, $2 folder of a Python environment, $3 root of another machine or "", $4 this project
ENTER = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
for folder in tmp run root; do mount -t tmpfs tmpfs "$1/$folder"; done
mount --bind /etc/resolv.conf "$1/etc/resolv.conf"
mount --bind /etc/ssl/certs "$1/etc/ssl/certs"
mount --bind "$2" "$1/hetero/environment"
mount --bind "$4" "$1/hetero/project"
test -z "$3" || mount --bind "$3" "$1/hetero/node"
ip link set lo up
root=$1
shift 4
cd /
exec chroot "$root" "$@"
"""


def cache():
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hetero-compute"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def root(python, log):
    """The folder that is this Python's machine; made when it is not there, which takes a minute."""
    _name, suite, mirror, components = RELEASES[python]
    recipe = hashlib.sha1("\0".join([(HERE / "root.sh").read_text(), suite, mirror, components]).encode()).hexdigest()
    folder = cache() / f"python-{python}-{recipe}"
    if not folder.exists():
        keyring, more = "/usr/share/keyrings/debian-archive-keyring.gpg", ""
        if python == KEEPS_KEYS:
            more = "ubuntu-archive-keyring"
        elif mirror == UBUNTU[0]:
            keyring = root(KEEPS_KEYS, log) / KEYS
        argv = [HERE / "root.sh", folder, suite, mirror, components, keyring, more]
        subprocess.run(argv, check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=1800)
    return folder


def inside(machine, environment, argv, node=None, online=False, **variables):
    """(argv, its variables) of a command in `machine`, in namespaces that end with it.

    Unless it is `online`, it has a loopback of its own, for monitors of containers that other tests run are seen in
    their network (/proc/net/unix), and no machine here could ask one: none has LXC's library.

    This project lies in /hetero/project there, the folder `environment` in /hetero/environment, and the root of machine
    `node` in /hetero/node.
    """
    names = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    names.update(PATH=SYSTEM_PATH, HOME="/root", LC_ALL="C.UTF-8", **variables)
    unshare = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    unshare += [] if online else ["--net"]
    entering = [*unshare, "sh", "-c", ENTER, "enter", machine, environment, node or "", PROJECT, *argv]
    return list(map(str, entering)), names
