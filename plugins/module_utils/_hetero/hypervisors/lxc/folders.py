# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of containers of this host: those in which some run now, and what shows that one is the folder it was.

Anybody may start one in a folder of his own (option lxcpath), and its device cgroup counts too.
"""

from __future__ import annotations

import os
import re
import uuid
from types import MappingProxyType
from typing import Iterable, Mapping

from ...core.errors import Refused
from ...files.mounts import mounts_below
from ...files.whole_file import write_whole
from . import monitors

#: In each folder in which a container of ours is or was. Its name has no dot in front, so that a move takes it along,
#: and is none that an instance can have (site/instance.py).
MARK = "hetero.containers"
TEXT = """\
Containers of hetero.compute were made in this folder. Where this file and all containers are missing, the file system
with them may not be mounted: none is taken to be no more, and what they have is given to nobody. The same where it has
another id than the host noted: then it is that of another folder, such as the bare point of a mount.
id {id}
"""
ID = re.compile(r"^id ([0-9a-f]{32})$", re.MULTILINE)
#: The file systems that the machine is to have.
FSTAB = "/etc/fstab"
#: A person's word, in place of the mark, that all containers of the folder (with this id) are no more.
GONE = "gone"
AWAY = "has no containers, and {name} was made in it: its file system may not be mounted"
STRAY = "has its file {mark} no more, and {name} was made in it: its file system may not be mounted"
ANOTHERS = "has a file {mark} of another folder, and {name} was made in it: its file system may not be mounted"
AWAY_WAY = (
    "mount it; where there is none, and {name} and all others are no more, have it say so (mkdir -p {lxcpath} && echo "
    "{gone} > {lxcpath}/{mark}); then run this again"
)
#: Of an allocation's container, while what is seen in its place may not be what was there.
COVERED = (
    "by /etc/fstab a file system is to be at {point}, which is not mounted, and {name}, made below it, may be on it"
)
COVERED_WAY = "mount it; where there is none any more, take its line out of /etc/fstab; then run this again"
#: {folder of containers that has had the mark, by the host's database: its id; None where it has none yet}.
Marks = Mapping[str, "str | None"]
NONE: Marks = MappingProxyType({})


def in_use() -> list[str]:
    """Return the folders in which containers of root run now. Claims of accounts without rights do not count."""
    return sorted({lxcpath for lxcpath, _name in monitors.of_root()})


def mark(lxcpath: str) -> None:
    """Note in a folder that a container of ours is in it."""
    if _text(lxcpath) is None:
        mark_anew(lxcpath)


def mark_anew(lxcpath: str) -> str:
    """Give a folder a mark of its own; return its id."""
    new = uuid.uuid4().hex
    write_whole(os.path.join(lxcpath, MARK), TEXT.format(id=new), 0o600)
    return new


def is_marked(lxcpath: str, marked: Marks = NONE) -> bool:
    """Return whether the mark is in a folder, with the id that it is to have there, if one was noted."""
    text = _text(lxcpath)
    return text is not None and (marked.get(lxcpath) or "") in text


def id_in(lxcpath: str) -> str | None:
    """Return the id of a folder's mark, or None: it has no mark, one of an earlier release, or a person's word."""
    found = ID.search(_text(lxcpath) or "")
    return str(found[1]) if found else None


def is_gone(lxcpath: str, marked: Marks) -> bool:
    """Return whether a person said that all containers of a folder are no more."""
    return is_marked(lxcpath, marked) and (_text(lxcpath) or "").startswith(GONE)


def _text(lxcpath: str) -> str | None:
    try:
        with open(os.path.join(lxcpath, MARK), encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""


def is_seen(lxcpath: str, marked: Marks = NONE) -> bool:
    """Return whether a folder shows that containers are, or were, made in what is mounted there: the mark, or a folder.

    An empty one may be the point where their file system is to be mounted; so may one that lost the mark.
    """
    return is_marked(lxcpath, marked) or (lxcpath not in marked and _has_folders(lxcpath))


def not_mounted(folder: str) -> str | None:
    """Return the mount point, at a folder or above it, whose file system is not mounted now; None where there is none.

    While it is not mounted, the folder shows other files than it had.
    """
    try:
        with open(FSTAB, encoding="utf-8", errors="surrogateescape") as table:
            lines = [line.split() for line in table if not line.lstrip().startswith("#")]
    except OSError:
        return None
    points = [words[1] for words in lines if len(words) > 1 and os.path.isabs(words[1])]
    below = os.path.join(os.path.realpath(folder), "")
    above = [point for point in points if below.startswith(os.path.join(os.path.realpath(point), ""))]
    return next((point for point in above if not _is_mounted(os.path.realpath(point))), None)


def _is_mounted(point: str) -> bool:
    """Return whether something is mounted at a path without links; of a bind mount os.path.ismount sees nothing."""
    return os.path.ismount(point) or point in mounts_below(point)


def covered(point: str, name: str) -> Refused:
    """Return the error of a container that is not seen while a file system is not mounted (`not_mounted`)."""
    return Refused(COVERED.format(point=point, name=name), point, COVERED_WAY)


def out_of_sight(marked: Marks, lxcpaths: Iterable[str] = ()) -> list[str]:
    """Return the folders that have had a mark and show none, or another's: they may be bare points of mounts.

    A folder that was removed does not count, nor does one whose mark was moved to another folder with all that was in
    it.

    :param lxcpaths: folders to which a mark may have been moved, beside those that have had one.
    """
    there = [lxcpath for lxcpath in sorted(marked) if os.path.lexists(lxcpath) or not_mounted(lxcpath)]
    bare = [lxcpath for lxcpath in there if not is_marked(lxcpath, marked)]
    seen = set(map(id_in, {*marked, *lxcpaths})) - {None} if bare else set()
    return [lxcpath for lxcpath in bare if marked[lxcpath] not in seen]


def was_moved(lxcpath: str, now: str, marked: Marks) -> bool:
    """Return whether a folder with its mark, and so with all that was in it, is another one now."""
    return not os.path.lexists(lxcpath) and marked.get(lxcpath) is not None and id_in(now) == marked[lxcpath]


def _has_folders(lxcpath: str) -> bool:
    try:
        with os.scandir(lxcpath) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:
        return False


def unseen(lxcpath: str, name: str, marked: Marks) -> Refused:
    """Return the error of a folder that is not seen (`is_seen`), and in which this container was made."""
    gone = " ".join(filter(None, (GONE, marked.get(lxcpath))))
    what = ANOTHERS if is_marked(lxcpath) else STRAY if _has_folders(lxcpath) else AWAY
    way = AWAY_WAY.format(name=name, lxcpath=lxcpath, mark=MARK, gone=gone)
    return Refused(what.format(name=name, mark=MARK), lxcpath, way)
