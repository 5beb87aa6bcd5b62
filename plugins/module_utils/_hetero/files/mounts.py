# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mount(2) and umount(2), which give an error number where mount(8) gives words, and the table of mounts."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
from dataclasses import dataclass

from ..core.errors import BadInput, Refused
from ..core.kernel_text import mount_table

#: <linux/mount.h>. On this machine nobody may gain rights by a set-uid file or a device node in a tenant's root, nor
#: run its programs.
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REC, MS_SLAVE = 0x4000, 0x80000
FOR_TENANTS = MS_NOSUID | MS_NODEV | MS_NOEXEC

#: <sys/mount.h>
MNT_DETACH = 2
#: <linux/sched.h>
CLONE_NEWNS = 0x20000


#: If somebody's folder itself is the point, such as of a bind mount: unmounted, it is empty, and all in it would stay.
IS_POINT = "is a mount point, and what belongs here has to lie in the folder itself"
#: Copies all beside the place where it belongs, unless something is mounted below, or as a loop device, which writes to
#: it still. It touches nothing else: it may be cut off anywhere, and typed again. No line is printed that removes what
#: it has copied: typed again another day, it might remove the only whole one.
COPY = "! grep -F {below} /proc/mounts && ! losetup -j {old} | grep . && cp -aT {old} {new} && sync"
#: Where it is mounted no more, what it has hidden would come over the copy.
POINT = "mountpoint {old} && "
PLAIN_WAY = (
    "nothing is touched: stop the instance, unmount what is mounted below that, and copy all of it beside it ({copy}); "
    "once that has ended without an error, unmount it (umount {old}), move what lies there then, which it has hidden, "
    "out of {place}, and put the copy there (mv -T {new} {old}); then run this again. What was mounted there stays as "
    "it is, for a person to remove"
)
TWICE = (
    "nothing is touched: more than one is mounted there, one over another: stop the instance, see which of them has "
    "its data (findmnt {old}), and leave that one alone (umount {old} takes the upper one); then run this again"
)


@dataclass(frozen=True)
class Mount:
    """What is mounted at a point: the type and source of the file system, and its options."""

    kind: str
    source: str
    options: tuple[str, ...]

    @property
    def lower(self) -> str | None:
        """The lower folder of an overlay, or None."""
        found = [option.partition("=")[2] for option in self.options if option.startswith("lowerdir=")]
        return found[0] if found else None


def mount_overlay(source: str, point: str, options: str) -> int:
    """Mount an overlay. Return 0 or the error number."""
    return _call("mount", os.fsencode(source), os.fsencode(point), b"overlay", FOR_TENANTS, os.fsencode(options))


def mount_ext4(device: str, point: str, options: str, read_only: bool = False) -> int:
    """Mount the ext4 file system on a device. Return 0 or the error number."""
    flags = FOR_TENANTS | (MS_RDONLY if read_only else 0)
    return _call("mount", os.fsencode(device), os.fsencode(point), b"ext4", flags, os.fsencode(options))


def mount_read_only(device: str, point: str, kind: str, options: str = "") -> int:
    """Mount the file system on a device, of any kind that the kernel knows. Return 0 or the error number."""
    flags = FOR_TENANTS | MS_RDONLY
    return _call("mount", os.fsencode(device), os.fsencode(point), os.fsencode(kind), flags, os.fsencode(options))


def own_mounts() -> None:
    """Hide this process's further mounts from all others, and have them unmounted when it ends.

    If / is shared, as systemd makes it, a file system that others unmount is unmounted here, too. Otherwise a root that
    is held here could not be mounted again.
    """
    number = _call("unshare", CLONE_NEWNS) or _call("mount", None, b"/", None, MS_REC | MS_SLAVE, None)
    if number:
        raise OSError(number, os.strerror(number), "mount namespace")


def unmount(point: str, detach: bool = False) -> int:
    """Unmount. Return 0 or the error number.

    :param detach: unmount even a point that is in use. Its present users keep it until they are done.
    """
    return _call("umount2", os.fsencode(point), MNT_DETACH if detach else 0)


def mounts_below(folder: str) -> dict[str, Mount]:
    """Return {mount point: Mount} of a folder and all below it, in the order of mounting.

    Of several mounts at one point the last counts, which is the one that is seen. Points begin with `folder` as it is
    written, also where a link leads to what it is in.
    """
    found: dict[str, Mount] = {}
    above, name = os.path.split(folder)
    real = os.path.join(os.path.realpath(above), name)
    for line in mount_table():
        if line.point == real or line.point.startswith(f"{real}/"):
            point = folder + line.point[len(real) :]
            found.pop(point, None)
            found[point] = Mount(line.kind, line.source, line.options)
    return found


def must_hold_no_mount(folder: str, thing: str, own: str | None = None) -> None:
    """Raise Refused if anything is mounted in a folder that is to be removed, or there, but for what is mounted at
    `own`.
    """
    mounts = mounts_below(folder)
    mounted = sorted(point for point in mounts if point not in (folder, own))
    if mounted:
        raise Refused("is mounted in it", f"{thing}: {mounted[0]}", "unmount it, then run this again")
    if folder in mounts:
        old, new, place = map(shlex.quote, (folder, f"{folder}.new", os.path.dirname(folder)))
        way = PLAIN_WAY.format(copy=copy_line(folder, f"{folder}.new"), old=old, new=new, place=place)
        real = os.path.join(os.path.realpath(os.path.dirname(folder)), os.path.basename(folder))
        times = [line.point for line in mount_table()].count(real)
        raise Refused(IS_POINT, f"{thing}: {folder}", TWICE.format(old=old) if times > 1 else way)


def copy_line(old: str, new: str) -> str:
    """Return the line that copies a folder or file (COPY)."""
    # proc(5): blanks and some others are written as \\040 there.
    point = re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found.group()):03o}", old)
    line = (POINT if old in mounts_below(old) else "") + COPY
    return line.format(below=shlex.quote(f" {point}/"), old=shlex.quote(old), new=shlex.quote(new))


@dataclass(frozen=True)
class Place:
    """Where a folder really is: its file system, and its path from the top of that file system.

    Two paths that lead to one folder by bind mounts or links have the same place.
    """

    system: str
    path: str

    def is_in(self, other: Place) -> bool:
        """Return whether this is the other place or below it."""
        above = other.path.rstrip("/")
        return self.system == other.system and (self.path == other.path or self.path.startswith(f"{above}/"))


def place_of(file: int) -> Place:
    """Return the place of an open file or folder.

    :param file: its descriptor.
    :raises BadInput: it has no path any more.
    """
    path = os.readlink(f"/proc/self/fd/{file}")
    if not os.path.exists(path) or not os.path.samestat(os.stat(path), os.fstat(file)):
        raise BadInput("was moved or removed while it was opened", path, "check what writes there")
    mount = _mount_of(file)
    for line in mount_table():
        if line.number == mount:
            return Place(line.system, os.path.normpath(os.path.join(line.root, os.path.relpath(path, line.point))))
    # this process sees only a part of the machine, without the mount that the path begins with
    return Place(str(os.fstat(file).st_dev), path)


def _mount_of(file: int) -> str:
    """Return the id of the mount that an open file or folder is in."""
    with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as table:
        return next(line.split()[1] for line in table if line.startswith("mnt_id:"))


def places_below(folder: str) -> list[Place]:
    """Return the places that are seen at a path and below it: its own and those of mounts; none if there is no such
    path.
    """
    try:
        file = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        own, real = place_of(file), os.readlink(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    inside = f"{real.rstrip('/')}/"
    return [own, *(Place(line.system, line.root) for line in mount_table() if line.point.startswith(inside))]


def _call(name: str, *arguments: bytes | int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if getattr(libc, name)(*arguments) else 0
