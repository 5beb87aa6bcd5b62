# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids that containers' users have on this host, a range for each container, and files shifted to them.

Ranges are taken from root's in /etc/subuid and /etc/subgid (subuid(5)), which the set-up writes; the host's database
knows whose each is. No two containers share an id: root in one is nobody in another.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
from typing import Iterable, Iterator, Mapping

from ...core.errors import BadInput, HeteroError, Refused, naming
from ...files import walk
from .config_text import text_of
from .liblxc import IdMap

#: Number of ids: Debian's users have numbers up to 65535 (base-passwd).
COUNT = 65536
FILES = ("/etc/subuid", "/etc/subgid")
#: Attributes of files in which there are ids; of those of a list, the tags of its entries (linux/posix_acl.h); and the
#: length of capabilities that count below one root alone.
CAPABILITY, ACLS = "security.capability", ("system.posix_acl_access", "system.posix_acl_default")
ACL_IDS = {0x02: "u", 0x08: "g"}
OF_A_ROOT = 24
MAPPED = re.compile(r"^\s*lxc\.id_?map\s*=\s*[ugb]\s+\d+\s+(\d+)\s+(\d+)", re.MULTILINE)


def of(first: int) -> tuple[IdMap, ...]:
    """Return the map of a container whose users and groups begin at this id of the host."""
    return tuple(IdMap(kind, 0, first, COUNT) for kind in "ug")


def ranges(text: str, user: str | None = None) -> list[tuple[int, int]]:
    """Return [(first, count)] of subuid's or subgid's text, of one user or of all.

    Lines of another form are left out.
    """
    found = []
    for line in text.splitlines():
        fields = line.split("#")[0].strip().split(":")
        if len(fields) == 3 and fields[1].isdigit() and fields[2].isdigit() and user in (None, fields[0]):
            found.append((int(fields[1]), int(fields[2])))
    return found


def common(texts: list[str]) -> list[tuple[int, int]]:
    """Return [(first, end)] that root has in all of these texts: a container's users and groups have the same ids."""
    spans = [(0, 1 << 32)]
    for text in texts:
        own = [(first, first + count) for first, count in ranges(text, "root")]
        spans = [(max(a, c), min(b, d)) for a, b in spans for c, d in own if max(a, c) < min(b, d)]
    return sorted(set(spans))


def free_range(taken: list[tuple[int, int]], wish: int | None = None) -> int | None:
    """Return the first id of a range that belongs to root and is not taken, or None.

    :param taken: [(first, count)] that are in use.
    :param wish: the first id of the range that is wanted; where that is not free, one that has no id of it.
    """
    texts = []
    for path in FILES:
        with naming(path), open(path, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    if wish is not None:
        own = any(start <= wish and wish + COUNT <= end for start, end in common(texts))
        if own and not any(other < wish + COUNT and wish < other + count for other, count in taken):
            return wish
        taken = [*taken, (wish, COUNT)]
    for start, end in common(texts):
        first = start
        while first + COUNT <= end:
            behind = [other + count for other, count in taken if other < first + COUNT and first < other + count]
            if not behind:
                return first
            # Ranges stay side by side, whatever lies between them.
            first += -(-(max(behind) - first) // COUNT) * COUNT
    return None


def mapped(lxcpath: str) -> list[tuple[int, int]]:
    """Return [(first, count)] in the configurations of all containers below `lxcpath`.

    :raises HeteroError: one cannot be read. Any range may be its container's, so none can be given.
    """
    found = []
    for name in os.listdir(lxcpath) if os.path.isdir(lxcpath) else []:
        path = os.path.join(lxcpath, name, "config")
        if os.path.isdir(path):
            continue  # no container
        try:
            found += [(int(first), int(count)) for first, count in MAPPED.findall(text_of(path) or "")]
        except Refused as error:
            what = f"{error.what}, and so nobody can tell which ids its container has"
            raise HeteroError(what, path, error.remedy) from error
    return found


def shift(folder: str, id_map: Iterable[IdMap], thing: str) -> None:
    """Give all files of a folder to the host's ids of their owners. Links are not followed, modes stay.

    :param id_map: without lines nothing is done.
    :raises BadInput: a file's owner has no id in the map.
    """
    if not id_map:
        return
    first = {line.kind: line.outside for line in id_map}
    seen: set[tuple[int, int]] = set()
    with naming(folder):
        _give(folder, None, os.lstat(folder), first, seen, thing)
        for _path, names, others, where in os.fwalk(folder, follow_symlinks=False):
            for name in names + others:
                status = os.stat(name, dir_fd=where, follow_symlinks=False)
                _give(name, where, status, first, seen, thing)


def move(folder: str, former: int, id_map: Iterable[IdMap]) -> None:
    """Give all files of a folder, which had ids of a range on another host, to those that the map says; also the ids
    in access control lists and in capabilities of files. Files that have them already stay, so that a run that was
    killed is ended by the next one: the two ranges are one, or have no id in common.

    :param former: the first id on the other host.
    :raises Refused: the two ranges have some ids in common, and not all.
    """
    first = {line.kind: line.outside for line in id_map}
    if all(one == former for one in first.values()):
        return
    if any(abs(one - former) < COUNT for one in first.values()):
        what = f"its ids there ({former}) and here ({first['u']}) overlap"
        raise Refused(what, folder, "give root other ranges in /etc/subuid and /etc/subgid of one of the hosts")
    with naming(folder):
        for name, status, where in _all_of(folder):
            _move(name, status, where, former, first)


def _all_of(folder: str) -> Iterator[tuple[str, os.stat_result, int]]:
    """Yield (name, stat, descriptor of the folder that holds it) of a folder and all below it, at any depth, by one
    descriptor after the other, so through no link.
    """
    here = os.open(folder, walk.FOLDER)
    try:
        left = [["."]]
        while left:
            if left[-1]:
                name = left[-1].pop()
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                yield name, status, here
                if stat.S_ISDIR(status.st_mode):
                    here, above = walk.open_folder(name, here), here
                    os.close(above)
                    left.append(os.listdir(here))
            else:
                left.pop()
                if len(left) > 1:
                    here, below = walk.open_folder("..", here), here
                    os.close(below)
    finally:
        os.close(here)


def _move(name: str, status: os.stat_result, where: int, former: int, first: Mapping[str, int]) -> None:
    """Give a file to its new ids."""
    path = f"/proc/self/fd/{where}/{name}"
    new = [moved(one, former, first[kind]) for kind, one in (("u", status.st_uid), ("g", status.st_gid))]
    kept = {} if stat.S_ISLNK(status.st_mode) else {key: _attribute(path, key) for key in (CAPABILITY, *ACLS)}
    if new != [status.st_uid, status.st_gid]:
        os.chown(name, *new, dir_fd=where, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=where)  # which chown(2) clears
    for key, value in kept.items():
        if value is not None:
            told = (moved_capability if key == CAPABILITY else moved_list)(value, former, first)
            if told != _attribute(path, key):  # chown(2) removes capabilities
                os.setxattr(path, key, told, follow_symlinks=False)


def _attribute(path: str, key: str) -> bytes | None:
    try:
        return os.getxattr(path, key, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return None
        raise


def moved(number: int, former: int, first: int) -> int:
    """Return an id of a range as that of another range; others stay."""
    return number - former + first if former <= number < former + COUNT else number


def moved_list(value: bytes, former: int, first: Mapping[str, int]) -> bytes:
    """Return an access control list with its users and groups moved (linux/posix_acl_xattr.h)."""
    head, entries = value[:4], [list(struct.unpack_from("<HHI", value, at)) for at in range(4, len(value), 8)]
    for entry in entries:
        if entry[0] in ACL_IDS:
            entry[2] = moved(entry[2], former, first[ACL_IDS[entry[0]]])
    return head + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def moved_capability(value: bytes, former: int, first: Mapping[str, int]) -> bytes:
    """Return the capabilities of a file with the root for whom they count moved (linux/capability.h, revision 3)."""
    if len(value) != OF_A_ROOT:
        return value
    (root,) = struct.unpack_from("<I", value, OF_A_ROOT - 4)
    return value[:-4] + struct.pack("<I", moved(root, former, first["u"]))


def _give(
    name: str,
    where: int | None,
    status: os.stat_result,
    first: Mapping[str, int],
    seen: set[tuple[int, int]],
    thing: str,
) -> None:
    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
        # A file with several names is shifted at the first one.
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
    if max(status.st_uid, status.st_gid) >= COUNT:
        owner = f"{status.st_uid}:{status.st_gid}"
        raise BadInput(f"{name} belongs to {owner}, which no user of a container is", thing, f"use ids below {COUNT}")
    os.chown(name, first["u"] + status.st_uid, first["g"] + status.st_gid, dir_fd=where, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        # chown(2) clears set-uid and set-gid.
        os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=where)
