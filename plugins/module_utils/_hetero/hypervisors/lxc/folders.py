# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of containers of this host: those in which some run now, and what shows that one is the folder it was.

Anybody may start one in a folder of his own (option lxcpath), and its device cgroup counts too.
"""

from __future__ import annotations

import os
from typing import Collection, Iterable, Protocol

from ...core.errors import Refused
from ...files.whole_file import write_whole
from . import monitors

#: In each folder in which a container of ours is or was. Its name has no dot in front, so that a move takes it along,
#: and is none that an instance can have (site/instance.py).
MARK = "hetero.containers"
TEXT = """\
Containers of hetero.compute were made in this folder. Where this file and all containers are missing, the file system
with them may not be mounted: none is taken to be no more, and what they have is given to nobody.
"""
AWAY = "has no containers, and {name} was made in it: its file system may not be mounted"
STRAY = "has its file {mark} no more, and {name} was made in it: its file system may not be mounted"
AWAY_WAY = (
    "mount it; where there is none, and {name} and all others are no more, have it say so (mkdir -p {lxcpath} && touch "
    "{lxcpath}/{mark}); then run this again"
)


class Notes(Protocol):
    """What is written down beside the host's database (claims/host/store.py)."""

    def note_marked(self, folder: str) -> None: ...


def in_use() -> list[str]:
    """Return the folders in which containers of root run now. Claims of accounts without rights do not count."""
    return sorted({lxcpath for lxcpath, _name in monitors.of_root()})


def mark(lxcpath: str) -> None:
    """Note in a folder that a container of ours is in it."""
    if not is_marked(lxcpath):
        write_whole(os.path.join(lxcpath, MARK), TEXT, 0o600)


def is_marked(lxcpath: str) -> bool:
    """Return whether the mark is in a folder."""
    return os.path.lexists(os.path.join(lxcpath, MARK))


def note(lxcpaths: Iterable[str], notes: Notes) -> None:
    """Write down which of these folders have the mark now: where it is missing later, another is seen there."""
    for lxcpath in filter(is_marked, lxcpaths):
        notes.note_marked(lxcpath)


def is_seen(lxcpath: str, marked: Collection[str] = ()) -> bool:
    """Return whether a folder shows that containers are, or were, made in what is mounted there: the mark, or a folder.

    An empty one may be the point where their file system is to be mounted; so may one that lost the mark.

    :param marked: the folders that have had the mark, by the host's database.
    """
    return is_marked(lxcpath) or (lxcpath not in marked and _has_folders(lxcpath))


def _has_folders(lxcpath: str) -> bool:
    try:
        with os.scandir(lxcpath) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:
        return False


def unseen(lxcpath: str, name: str) -> Refused:
    """Return the error of a folder that is not seen (`is_seen`), and in which this container was made."""
    what, way = STRAY if _has_folders(lxcpath) else AWAY, AWAY_WAY.format(name=name, lxcpath=lxcpath, mark=MARK)
    return Refused(what.format(name=name, mark=MARK), lxcpath, way)
