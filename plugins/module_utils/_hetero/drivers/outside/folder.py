# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders on a node where a site's own drivers lie. What is read there runs as whoever reads it, so that nobody
else may have written it.

Role tftp_proxy writes to them, and no upgrade of the collection touches them.
"""

from __future__ import annotations

import os
import stat

from ...core.errors import BadInput, HeteroError, Refused, naming
from ...site.proxy_config import DRIVERS_FOLDER
from .source import FOLDERS, MOST, NAME, PYTHON, TABLE, Source, read

#: Who may write to a file besides its owner.
OTHERS = stat.S_IWGRP | stat.S_IWOTH


def folder_of(kind: str, below: str = DRIVERS_FOLDER) -> str:
    """Return the folder of the drivers of a kind.

    :param below: where the folders of all kinds are, by the node's configuration.
    """
    return os.path.join(below, FOLDERS[kind])


def find(name: str, folder: str) -> Source | None:
    """Return the file of a driver; None where there is none.

    :raises BadInput: there are two, or it is no driver's.
    :raises Refused: somebody else may have written it.
    """
    if not NAME.fullmatch(name):
        return None
    there = [path for path in (os.path.join(folder, name + end) for end in (PYTHON, TABLE)) if os.path.lexists(path)]
    if len(there) > 1:
        raise BadInput(f"are both driver {name}", " and ".join(there), "take one of them away")
    return _read(there[0], folder) if there else None


def names(kind: str, folder: str) -> list[str]:
    """Return the names of the drivers of a kind that lie in the folder; one whose file is wrong hides no other."""
    found = []
    for name in files(folder):
        try:
            source = _read(os.path.join(folder, name), folder)
        except HeteroError:
            continue
        found += [source.name] if source.kind in (kind, "") else []
    return sorted(found)


def files(folder: str) -> list[str]:
    """Return the names of the files in the folder that are drivers'; none where there is no folder."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith((PYTHON, TABLE)))
    except OSError:
        return []


def _read(path: str, folder: str) -> Source:
    _must_be_trusted(folder)
    with naming(path):
        _must_be_ours(path, os.lstat(path))
        # Another may have put something else in its place since.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as file:
            _must_be_ours(path, os.fstat(opened))
            data = file.read(MOST + 1)
    return read(path, data)


def _must_be_trusted(folder: str) -> None:
    """Raise Refused if somebody else may put a file into the folder, or another folder into its place."""
    with naming(folder):
        _must_be_ours(folder, os.lstat(folder), stat.S_ISDIR)
        above = os.path.realpath(os.path.dirname(os.path.abspath(folder)))
        while True:
            seen = os.lstat(above)
            # Where the sticky bit is, nobody renames what is another's: sticky(7).
            if not seen.st_mode & stat.S_ISVTX:
                _must_be_ours(above, seen, stat.S_ISDIR)
            if above == os.path.dirname(above):
                return
            above = os.path.dirname(above)


def _must_be_ours(path: str, seen: os.stat_result, is_kind: object = stat.S_ISREG) -> None:
    """Raise Refused if what lies at a path is of another kind, or anybody but root and this account may change it."""
    folder = is_kind is stat.S_ISDIR
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(seen.st_mode):
        kind = "link" if stat.S_ISLNK(seen.st_mode) else "file of another kind"
        what = f"is a {kind}, and no driver is loaded by one"
        raise Refused(what, path, f"put {'the folder' if folder else 'the file'} itself there")
    if seen.st_uid not in (0, os.geteuid()):
        what = f"belongs to user {seen.st_uid}, who could have any driver run here"
        raise Refused(what, path, f"chown root:root {path}")
    if seen.st_mode & OTHERS:
        what = "others may write to it, who could have any driver run here"
        raise Refused(what, path, f"chmod go-w {path}")
