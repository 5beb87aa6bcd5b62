# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A place in which faulty code can do this machine no harm, though it runs as root.

A fault can take the very check away that keeps a device open for the whole machine, or a signal from process 1. So what
it runs in has processes, mounts, networks and cgroups of its own: the cgroups that it sees begin at an empty one, and
the machine's files, settings and hardware are read-only. It all goes when its first process ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

NEW_PLACE = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET (linux/sched.h)."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h
RDONLY, REMOUNT, BIND, REC, PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000  # linux/mount.h
DETACH = 2  # sys/mount.h
#: Folders of / that stay as they are: what is in them is the kernel's, or goes with the place.
WRITABLE = ("dev", "proc", "run", "tmp")
ROOT = Path(__file__).resolve().parents[2]
#: Folders of which only the names of folders in them are there.
EMPTY = ("/run", "/var/lib/lxc", "/var/log", "/var/tmp")
#: A /proc with nothing mounted in it: where a place has none, the kernel lets no user namespace mount its own /proc.
WHOLE = "/run/hetero-mutants-proc"
#: Hierarchies of cgroup v1 that the code works in, besides v2: liblxc starts no container where one that limits it is
#: read-only.
HIERARCHIES = {"cpu", "cpuacct", "devices", "freezer", "memory", "pids"}
#: Behind it the process that made the cgroup.
OURS = "hetero-mutants-"
LIBC = ctypes.CDLL(None, use_errno=True)


def done(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(what, where, kind=None, flags=0, options=None):
    words = [word if word is None else word.encode() for word in (what, where, kind)]
    done(LIBC.mount(*words, ctypes.c_ulong(flags), options and options.encode()))


def ends_with_its_parent():
    done(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def apart(inside):
    """Call `inside()` in such a place; over when all in it is gone. Who is not root can do no harm, and just calls it.

    :raises OSError: there is no such place; then nothing was called.
    """
    if os.geteuid() != 0:
        inside()
        return
    cgroups = []
    try:
        for point, kind, options in _hierarchies():
            for left in Path(point).glob(f"{OURS}*"):  # by one that was killed
                if not os.path.exists(f"/proc/{left.name[len(OURS) :]}"):
                    _remove(left)
            folder = Path(point, f"{OURS}{os.getpid()}")
            folder.mkdir()
            cgroups.append((folder, point, kind, options))
        keeper = os.fork()
        if keeper == 0:
            _enter(cgroups, inside)
        if os.waitpid(keeper, 0)[1]:
            raise OSError("no place apart from the rest of this machine can be made here")
    finally:
        for folder, *_more in cgroups:
            _remove(folder)


def _remove(folder):
    """The cgroups that tests left, however deep; of two runs that remove the same, one finds nothing."""
    argv = ["find", folder, "-depth", "-type", "d", "-delete"]
    subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _enter(cgroups, inside):
    """Of a child: ends with the first process of the new place, with 0 once there was one."""
    ended = 1
    try:
        ends_with_its_parent()
        for folder, *_more in cgroups:
            (folder / "cgroup.procs").write_text("0")
        done(LIBC.unshare(NEW_PLACE))
        first = os.fork()
        if first:
            ended = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        else:
            ends_with_its_parent()
            _furnish(cgroups)
            inside()
            ended = 0
    except OSError as error:
        print(f"{error.__traceback__.tb_lineno}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(ended)


def _furnish(cgroups):
    mount(None, "/", flags=REC | PRIVATE)
    mount("proc", "/proc", "proc")
    for _folder, point, kind, options in cgroups:
        done(LIBC.umount2(point.encode(), DETACH))
        mount("cgroup", point, kind, options=options)
    own = {point for _folder, point, _kind, _options in cgroups}
    for place in [place for place in _read_only() if place not in own]:
        if not os.path.ismount(place):
            mount(place, place, flags=BIND | REC)
        mount(None, place, flags=BIND | REMOUNT | RDONLY)
    for point, _kind, _options in _mounted():
        if point not in own:
            mount(None, point, flags=BIND | REMOUNT | RDONLY)
    for place in filter(os.path.isdir, EMPTY):
        names = [entry.name for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
        mount("hetero-mutants", place, "tmpfs", options="mode=755")
        for name in names:
            os.mkdir(os.path.join(place, name), 0o755)
    os.mkdir(WHOLE, 0o700)
    mount("proc", WHOLE, "proc")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def _read_only():
    """All folders of the machine but those that a test needs, and the project itself, which may lie in one of these."""
    found = [entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False)]
    found = sorted(path for path in found if path[1:] not in WRITABLE)
    return [*found, "/proc/sys", "/sys/fs/cgroup", str(ROOT)]


def _hierarchies():
    for point, kind, options in _mounted():
        names = set(options.split(",")) & HIERARCHIES
        if kind == "cgroup2" or names:
            yield point, kind, ",".join(sorted(names)) or None


def _mounted():
    """(mount point, file system, its options) of each cgroup file system."""
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        words, _dash, rest = line.partition(" - ")
        kind, _what, options = rest.split()
        if kind in ("cgroup", "cgroup2"):
            yield words.split()[4], kind, options
