# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file system in the image of a disk: raw or qcow2, with a partition table or without.

It is mounted read-only, where only a child process sees it, and copied by the rules for archives. What lies on LVM,
RAID or an encrypted partition is not looked for.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import struct
from typing import NamedTuple

from ..core.child import in_child
from ..core.command import Limits, command, ended, last_words
from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError
from ..core.this_node import THIS_NODE
from ..files.loop import attached
from ..files.mounts import mount_read_only, own_mounts
from ..files.removal import remove_tree
from ..files.scratch import leave_room
from ..files.tree import ROOT, copy_folder
from ..files.walk import in_time
from .disk_signs import DISK, LARGEST, QCOW2

#: {file system as blkid calls it: (the kernel's name, mount options)}. XFS refuses the id of a disk of this machine.
KINDS = {
    "ext2": ("ext4", ""),
    "ext3": ("ext4", ""),
    "ext4": ("ext4", ""),
    "xfs": ("xfs", "nouuid"),
    "btrfs": ("btrfs", ""),
    "squashfs": ("squashfs", ""),
    "erofs": ("erofs", ""),
}
#: docs/interop/qcow2.txt: version, backing_file_offset, size, crypt_method and, from version 3, incompatible_features.
HEADER, FEATURES, OTHER_FILE, CORRUPT = struct.Struct(">4x I Q 8x Q I"), struct.Struct(">72x Q"), 4, 2
PLAIN, POINT = "disk.raw", "disk.mounted"
#: Bytes of the sectors in which sfdisk counts where an image's table does not say it.
SECTOR = 512
#: A root's table of file systems (fstab(5)), the most bytes that it has, how a line names a part of a disk, options by
#: which nobody waits for it, and what is written before a line for which a machine that starts without that disk would
#: wait, and end in emergency mode.
FSTAB, MOST_FSTAB = os.path.join("etc", "fstab"), 1 << 20
OF_A_DISK, UNAWAITED = re.compile(rb'"?(/dev/|(PART)?(UUID|LABEL)=|ID=)'), {b"noauto", b"nofail"}
NOT_HERE = b"# of the disk that this image was made of: "
FLATTEN = "make it one of its own: qemu-img convert -O qcow2 FILE NEW"
EXPORT = "give its root file system as an image of its own (raw, or a tar of root/)"


class Part(NamedTuple):
    """A part of a disk with a file system: what it is called in errors, where it begins, its bytes, its kind."""

    name: str
    offset: int
    size: int
    kind: str


def write_root(folder: str, source: str, limit: int, deadline: Deadline) -> None:
    """Make ROOT in a folder of the disk's image DISK in it.

    :param source: its name in errors.
    :param limit: bytes that the root, and what is written meanwhile, may have each.
    :raises BadInput: there is no root file system, or more than one, or it cannot be read.
    """
    disk = _plain(folder, source, limit, deadline)
    parts = _parts(disk, source, deadline)
    readable = [part for part in parts if part.kind in KINDS]
    if not readable:
        found = ", ".join(f"{part.name}: {part.kind}" for part in parts) or "nothing"
        raise BadInput(f"no file system in it that is read here (found: {found})", source, EXPORT)
    point = os.path.join(folder, POINT)
    os.mkdir(point, 0o700)
    in_child(lambda: _copy(disk, readable, point, folder, limit), deadline, source, "check the disk")
    os.rmdir(point)
    _forget_parts(os.path.join(folder, ROOT, FSTAB))
    for path in (disk, os.path.join(folder, DISK)):
        remove_tree(path)


def _plain(folder: str, source: str, limit: int, deadline: Deadline) -> str:
    """Return the path of the disk as raw bytes."""
    path = os.path.join(folder, DISK)
    with open(path, "rb") as file:
        header = file.read(104)
    if not header.startswith(QCOW2):
        return path
    _check_qcow2(header, source)
    raw = os.path.join(folder, PLAIN)

    def look(_process: int) -> None:
        taken = os.stat(raw).st_blocks * 512 if os.path.exists(raw) else 0
        if taken > limit:
            what = f"is larger than the {limit >> 20} MiB there is room for"
            raise BadInput(what, source, "make room, or the image smaller", room=limit)
        leave_room(folder, taken, taken, source)

    argv = ["qemu-img", "convert", "-f", "qcow2", "-O", "raw", path, raw]
    remedy = "check the file; on a node without it, install package qemu-utils or run the set-up playbook"
    done = ended(argv, source, remedy, Limits(max(1.0, deadline.left)), look=look)
    if done.returncode:
        raise BadInput(f"qemu-img cannot read it ({last_words(done)})", source, remedy)
    look(0)
    return raw


def _check_qcow2(header: bytes, source: str) -> None:
    """Raise BadInput for a qcow2 that names other files, which may be any of this machine's, or cannot be read."""
    if len(header) < 72:
        raise BadInput("is a qcow2 that is cut short", source, "fetch it again")
    version, backing, size, crypt = HEADER.unpack_from(header)
    features = FEATURES.unpack_from(header)[0] if version >= 3 and len(header) >= 80 else 0
    if backing or features & OTHER_FILE:
        raise BadInput("is a qcow2 over another file, which is not taken", source, FLATTEN)
    if crypt:
        raise BadInput("is an encrypted qcow2", source, FLATTEN)
    if features & CORRUPT:
        raise BadInput("is a qcow2 that is marked as damaged", source, "repair it: qemu-img check -r all FILE")
    if size > LARGEST:
        raise BadInput(f"is a disk of {size >> 30} GiB; {LARGEST >> 30} GiB is the most", source, EXPORT)


def _parts(disk: str, source: str, deadline: Deadline) -> list[Part]:
    """Return the parts of a disk that hold something that blkid knows; of a disk without a table the only one."""
    about = _probe(disk, source)
    if "PTTYPE" not in about:
        return [Part("the disk", 0, 0, about["TYPE"])] if "TYPE" in about else []
    table = json.loads(command(["sfdisk", "--json", disk], source, "check its partition table"))["partitiontable"]
    sector, found = int(table.get("sectorsize", SECTOR)), []
    for number, entry in enumerate(in_time(table.get("partitions", []), deadline, source), start=1):
        offset, size = int(entry["start"]) * sector, int(entry["size"]) * sector
        kind = _probe(disk, source, offset, size).get("TYPE")
        if kind:
            found.append(Part(f"partition {number}", offset, size, kind))
    return found


def _probe(disk: str, source: str, offset: int = 0, size: int = 0) -> dict[str, str]:
    """Return what blkid says of a disk or a part of it; nothing where it knows nothing."""
    argv = ["blkid", "--probe", "--output", "export", "--offset", str(offset)]
    argv += ["--size", str(size)] if size else []
    said = command([*argv, disk], source, "check the disk's image", ok=(0, 2))
    return dict(line.partition("=")[::2] for line in said.splitlines() if "=" in line)


def _copy(disk: str, parts: list[Part], point: str, folder: str, limit: int) -> None:
    """Copy the one root file system among these parts. What is mounted is gone when this process ends.

    Errors are without a thing, which the parent process adds.
    """
    own_mounts()
    roots = []
    for part in parts:
        _mount(disk, part, point)
        if _is_root(point):
            roots.append(part)
    if len(roots) != 1:
        named = ", ".join(f"{part.name}: {part.kind}" for part in roots or parts)
        what = "more than one root file system" if roots else "no root file system (with etc, and usr or bin)"
        raise BadInput(f"{what} in it ({named})", None, EXPORT)
    _mount(disk, roots[0], point)
    copy_folder(point, folder, limit, below=[ROOT], leave_out=True)


def _forget_parts(path: str) -> None:
    """Make comments of the lines of a root's fstab without which a machine that has not its disk does not start. The
    root's own is named by its kernel.
    """
    status = os.lstat(path) if os.path.lexists(path) else None
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > MOST_FSTAB:
        return
    with open(path, "r+b") as file:
        lines = file.read().splitlines(keepends=True)
        file.seek(0)
        file.writelines(NOT_HERE + line if _is_awaited(line) else line for line in lines)


def _is_awaited(line: bytes) -> bool:
    """Return whether a line of fstab has a machine wait for a part of a disk as it starts."""
    device, point, _kind, options = (*line.split()[:4], b"", b"", b"", b"")[:4]
    return bool(OF_A_DISK.match(device)) and (point == b"/" or not UNAWAITED.intersection(options.split(b",")))


def _mount(disk: str, part: Part, point: str) -> None:
    kind, options = KINDS[part.kind]
    with attached(disk, True, part.offset, part.size) as device:
        number = mount_read_only(device, point, kind, options)
    if number == errno.ENODEV:
        remedy = f"load its module there (modprobe {kind}), or {EXPORT}"
        raise BadInput(f"{part.name} is {part.kind}, which the kernel of {THIS_NODE} does not know", None, remedy)
    if number == errno.EROFS:
        remedy = "have the machine that it is of shut down, or repair it there (e2fsck, xfs_repair)"
        raise BadInput(f"{part.name} ({part.kind}) was not unmounted when it was copied", None, remedy)
    if number:
        what = f"{part.name} ({part.kind}) cannot be mounted ({os.strerror(number)})"
        raise HeteroError(what, None, "check the file; the kernel's reason: dmesg")


def _is_root(point: str) -> bool:
    def has(name: str) -> bool:
        path = os.path.join(point, name)
        return os.path.lexists(path) and stat.S_ISDIR(os.lstat(path).st_mode)

    return has("etc") and (has("usr") or has("bin"))
