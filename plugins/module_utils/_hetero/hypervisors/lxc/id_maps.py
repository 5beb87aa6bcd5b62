# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids that containers' users have on this host, a range for each container, and files shifted to them.

Ranges are taken from root's in /etc/subuid and /etc/subgid (subuid(5)), which the set-up writes; the host's database
knows whose each is. No two containers share an id: root in one is nobody in another.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Iterable, Mapping

from ...core.errors import BadInput, HeteroError, Refused, naming
from .config_text import text_of
from .liblxc import IdMap

#: Number of ids: Debian's users have numbers up to 65535 (base-passwd).
COUNT = 65536
FILES = ("/etc/subuid", "/etc/subgid")
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


def free_range(taken: list[tuple[int, int]]) -> int | None:
    """Return the first id of a range that belongs to root and is not taken, or None.

    :param taken: [(first, count)] that are in use.
    """
    texts = []
    for path in FILES:
        with naming(path), open(path, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
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
