# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file system is a guest's root: its UUID, in a file of the guest's folder, as own_root.py has it of containers.

The disk of another guest that was copied or moved into a guest's place is so told before it is started. A guest of an
earlier release has no such file; it gets one with what is found there first.

A guest's root can give its disk any UUID, so this says less than of a container. A disk with an unknown UUID
counts as the guest's own. A guest whose disk has another guest's UUID is not started, which harms only itself; it can
be ended, unless the file is not the one that was made for it: no guest can bring that about.

The file is written before there is anything else in the folder, so that it also tells the rest of a guest whose making
was cut off from what somebody else has put there.
"""

from __future__ import annotations

import os
import re
import shlex
import uuid as uuids
from contextlib import suppress
from typing import Iterable, NamedTuple, Sequence

from ...core.errors import HeteroError, Refused, naming
from ...files import strangers
from ...files.file_system import uuid_of
from ...files.links import must_be_no_link
from ...files.plain_file import read_plain
from ...files.whole_file import write_whole
from .guest_folder import DESCRIPTION, DISK, made_for

#: The file, and its line: of the file system, of the file it is in, and of the guest (its domain's UUID).
RECORD = "disk.uuid"
LINE = re.compile(r"(?P<uuid>[0-9a-f-]{36}) in inode (?P<inode>\d+) of guest (?P<guest>[0-9a-f-]{36})\n")
ANOTHERS = "this is the disk of guest {other}, not of {name}"
SWAP = "put each back in its own place (mv, which does no harm to one that runs), then run this again"
COPY = "this is a copy of the disk of guest {other}, or has taken its UUID: not {name}'s"
SAME = "this and the disk of guest {other} are copies of one another, and nobody can tell which is the first"
NEITHER = "this is not the disk that was made for {name}, but another file with another UUID"
BACK = "put {name}'s own disk there; if this is its own, from a backup, remove {record}; then run this again"
STRANGE = "something lies there that was not made for {name}, and may be all that somebody has"
AWAY = "move it away, then run this again"
NAMES = "has {path} in place of {own}"
USE = "have it use the latter, with its own disk there ({editor}), then run this again"
GOES = "has {paths} beside its root, in its folder, with which that would go"
KEEP = (
    "nothing is touched: take it from the domain (virsh detach-disk {name} {path} --config where it starts with it, "
    "the same with --live where it runs with it), and move it out of there, or remove it where nobody needs it; then "
    "run this again"
)
#: Names of the files that are made in a guest's folder, also where that was killed (whole_file.py); of the logs of its
#: console that libvirt sets aside; and of former disks over which a printed line (boot_files.py) moves another.
MADE = re.compile(
    r"\.(disk\.uuid|domain\.xml)\.[0-9]+~|disk\.uuid|domain\.xml|kernel|initrd|console\.log(\.[0-9]+)?|"
    r"disk\.raw(\.~[0-9]+~)?"
)
#: What it leaves only until the guest is whole.
HALF_MADE = re.compile(rf"{MADE.pattern}|root|host-key")
NOT_MADE = "holds {names}, which was not made for the guest and would go with it"
OUT = (
    "nothing is touched: see whose it is, such as a disk of data that its domain names no more; move it out of there, "
    "or remove it where nobody needs it; then run this again"
)
ASIDE = "remove nothing: move the copy out of its folder, and put the guest's own disk there, then run this again"


class Record(NamedTuple):
    """What is written down of a guest's disk.

    :param uuid: of its file system.
    :param inode: the number of the file.
    :param guest: the UUID of the domain that it was made for.
    """

    uuid: str
    inode: int
    guest: str


def recorded(folder: str) -> Record | None:
    """Return what is written down in a guest's folder; None where nothing is, or it cannot be read."""
    with suppress(OSError):
        found = LINE.fullmatch((read_plain(os.path.join(folder, RECORD), 4096) or b"").decode("utf-8", "replace"))
        return Record(found["uuid"], int(found["inode"]), found["guest"]) if found else None
    return None


def begin(folder: str, guest: str) -> str:
    """Make the empty file of a new guest's disk, which others cannot read at any moment, and write down that it is the
    guest's; return the UUID that its file system is to have.
    """
    path = os.path.join(folder, DISK)
    with naming(path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            new = Record(str(uuids.uuid4()), os.fstat(file).st_ino, guest)
        finally:
            os.close(file)
        _write(folder, new)
    return new.uuid


def record(folder: str, guest: str) -> None:
    """Write down the file system and the file in which a guest's root is.

    Only what nothing speaks against: an unknown UUID where another is written down is not, nor one that others have.

    :param guest: the UUID of its domain.
    :raises HeteroError: it cannot be read or written.
    """
    file = os.path.join(folder, DISK)
    found, own = uuid_of(file), _own(folder, guest)
    if found is None or (own is not None and own.uuid != found) or (own is None and _refusal(folder, guest)):
        return
    path = os.path.join(folder, RECORD)
    with naming(path):
        new = Record(found, os.stat(file).st_ino, guest)
        if own != new:
            _write(folder, new)


def take(folder: str, guest: str) -> None:
    """Write down that the disk which was copied into a guest's folder, in the file that `begin` made, is the guest's.

    :param guest: the UUID of its domain.
    :raises Refused: it has no file system, or lies in another file.
    """
    path, own = os.path.join(folder, DISK), _own(folder, guest)
    found, inode = uuid_of(path), _inode(folder)
    if found is None or inode is None or own is None or own.inode != inode:
        raise Refused("is not the disk that was copied for it", path, AWAY)
    with naming(path):
        _write(folder, Record(found, inode, guest))


def _write(folder: str, new: Record) -> None:
    write_whole(os.path.join(folder, RECORD), f"{new.uuid} in inode {new.inode} of guest {new.guest}\n", 0o600)


def must_be_own(folder: str, guest: str) -> None:
    """Raise Refused if the disk in a guest's folder is another's, before the guest is started.

    :param guest: the UUID of its domain.
    :raises HeteroError: it cannot be read.
    """
    refusal = _refusal(folder, guest)
    if refusal:
        raise refusal


def may_be_removed(folder: str, guest: str, was_made: bool) -> None:
    """Raise Refused if what would go with a guest's folder was not made for it, or would stay, behind a link.

    Its own file, whatever its guest wrote into it, is nobody else's only one, unless by its UUID it is the disk of a
    guest that has none in its place, which no guest can bring about; nor is one with its own file system, such as from
    a backup.

    :param guest: the UUID of its domain.
    :param was_made: whether a guest was made; it may be of an earlier release, and then its file may say nothing.
    """
    file, name = os.path.join(folder, DISK), os.path.basename(folder)
    must_be_no_link(folder, file)
    own, inode, found, moved = _own(folder, guest), _inode(folder), None, False
    if inode is not None:
        with suppress(HeteroError):  # of what cannot be read only the file tells whose it is
            found = uuid_of(file)
    if own is not None and own.inode == inode:
        for look in _others(folder, guest) if found not in (None, own.uuid) else ():
            if look.line == found and look.is_away:
                raise Refused(ANOTHERS.format(other=look.name, name=name), file, SWAP)
        return
    if inode is not None:
        came = came_with(folder, guest)
        for look in _others(folder, guest):
            its = (found is not None and look.line == found) or look.guest == came
            if look.lacks(inode) or (its and look.disk != found):
                raise Refused(ANOTHERS.format(other=look.name, name=name), file, SWAP)
            # its own guest gave it the other's UUID, and all folders were copied to another file system since
            moved |= its and look.made not in (inode, look.there)
        if own is not None and own.uuid != found and not moved:
            back = BACK.format(name=name, record=os.path.join(folder, RECORD))
            raise Refused(NEITHER.format(name=name), file, back)
    if own is None and not was_made and _has_more(folder):
        raise Refused(STRANGE.format(name=name), folder, AWAY)


def came_with(folder: str, guest: str) -> str | None:
    """Return the UUID of the other guest with whose own line the disk in a guest's folder came there, or None."""
    line, found = recorded(folder), None
    with suppress(HeteroError):
        found = uuid_of(os.path.join(folder, DISK))
    if line is None or line.guest == guest or (line.inode != _inode(folder) and line.uuid != found):
        return None
    return line.guest


def _has_more(folder: str) -> bool:
    """Return whether in a folder is more than what a guest's making leaves that was cut off before `begin` ended."""
    if not os.path.isdir(folder):
        return os.path.lexists(folder)
    file = os.path.join(folder, DISK)
    empty = {DISK} if os.path.isfile(file) and os.path.getsize(file) == 0 else set()
    return any(name not in empty and not name.startswith(f".{RECORD}.") for name in os.listdir(folder))


def must_not_name_anothers(folder: str, guest: str, paths: Iterable[str], editor: str) -> None:
    """Raise Refused if a disk that a guest's domain names is another guest's.

    :param paths: those of the domain's disks.
    :param editor: in words, by what a person changes what it starts with.
    """
    file, parent, name = os.path.join(folder, DISK), os.path.dirname(folder), os.path.basename(folder)
    for path in paths:
        if path != file and os.path.exists(path):
            for look in _others(folder, guest):
                its = os.path.join(parent, look.name, DISK)
                if os.path.exists(its) and os.path.samefile(path, its):
                    what = f"{NAMES.format(path=path, own=file)}: {ANOTHERS.format(other=look.name, name=name)}"
                    raise Refused(what, f"domain {name}", USE.format(editor=editor))


def must_name_own(folder: str, paths: Sequence[str], editor: str) -> None:
    """Raise Refused if a guest's domain has other disks than the one in its folder, which would go alone.

    :param paths: those of the domain's disks.
    :param editor: as of must_not_name_anothers.
    """
    others = other_disks(folder, paths)
    if others:
        name = os.path.basename(folder)
        what = NAMES.format(path=", ".join(others), own=os.path.join(folder, DISK))
        raise Refused(what, f"domain {name}", USE.format(editor=editor))


def beside(folder: str, paths: Iterable[str]) -> list[str]:
    """Return the disks that a guest's domain has beside its own, and that stay when its folder is removed; raise
    Refused if one of them lies in there, or anything else that was not made for the guest.

    :param paths: those of the domain's disks.
    """
    own, place = os.path.join(folder, DISK), os.path.join(os.path.realpath(folder), "")
    found = [path for path in dict.fromkeys(paths) if not is_one(path, own)]
    inside = [path for path in found if os.path.realpath(path).startswith(place) and os.path.exists(path)]
    if inside:
        name = os.path.basename(folder)
        way = KEEP.format(name=name, path=shlex.quote(inside[0]))
        raise Refused(GOES.format(paths=", ".join(inside)), f"domain {name}", way)
    must_hold_only_own(folder)
    return found


def must_hold_only_own(folder: str) -> None:
    """Raise Refused if something lies in a guest's folder that was not made for it."""
    made = MADE if os.path.lexists(os.path.join(folder, DESCRIPTION)) else HALF_MADE
    strangers.must_hold_only(folder, made, NOT_MADE, OUT)


def other_disks(folder: str, paths: Sequence[str]) -> Sequence[str]:
    """Return a domain's disks, if the one in the guest's folder is none of them; else nothing."""
    own = os.path.join(folder, DISK)
    return () if any(is_one(path, own) for path in paths) else paths


def is_one(path: str, disk: str) -> bool:
    """Return whether both paths are of one file, which may be mounted in two places."""
    if os.path.realpath(path) == os.path.realpath(disk):
        return True
    return os.path.exists(path) and os.path.exists(disk) and os.path.samefile(path, disk)


def editor_of(name: str, folder: str, is_defined: bool) -> str:
    """Return, in words, by what a person changes what a guest starts with.

    :param is_defined: whether libvirt has its domain.
    """
    return f"virsh edit {name}" if is_defined else f"an editor, in {os.path.join(folder, DESCRIPTION)}"


def _inode(folder: str) -> int | None:
    """Return the number of the file in a guest's folder."""
    with suppress(OSError):
        return os.stat(os.path.join(folder, DISK)).st_ino
    return None


def _own(folder: str, guest: str) -> Record | None:
    """Return what is written down in a guest's folder, unless it came from another's with the disk."""
    own = recorded(folder)
    return own if own and own.guest == guest else None


def _refusal(folder: str, guest: str) -> Refused | None:
    file, name = os.path.join(folder, DISK), os.path.basename(folder)
    found, own, inode = uuid_of(file), _own(folder, guest), _inode(folder)
    if inode is None or (own and own.uuid == found):
        return None
    others = _others(folder, guest)
    if own is None or own.inode != inode:
        for look in others:
            if look.lacks(inode):
                return Refused(ANOTHERS.format(other=look.name, name=name), file, SWAP)
    if found is None:
        return None
    came = came_with(folder, guest)
    for look in sorted(others, key=lambda look: look.disk == found):
        if look.line == found or look.guest == came:
            if look.disk != found:
                return Refused(ANOTHERS.format(other=look.name, name=name), file, SWAP)
            return Refused(COPY.format(other=look.name, name=name), file, ASIDE)
    for look in others:
        if look.line is None and look.disk == found:
            what = COPY if own else SAME
            return Refused(what.format(other=look.name, name=name), file, ASIDE)
    if own and own.inode != inode:  # what no guest can bring about
        return Refused(NEITHER.format(name=name), file, BACK.format(name=name, record=os.path.join(folder, RECORD)))
    return None


class _Look(NamedTuple):
    """What is found in the folder of another guest.

    :param guest: the UUID of its domain.
    :param line: the UUID of its disk by what is written down.
    :param disk: the UUID of the file system that lies there.
    :param made: the number of the file with its disk by what is written down.
    :param there: the number of the file that lies there.
    """

    name: str
    guest: str
    line: str | None
    disk: str | None
    made: int | None
    there: int | None

    def lacks(self, inode: int) -> bool:
        """Return whether its disk is the file of this number, and is not in its place.

        In folders that were copied to another file system, numbers mean nothing: there its disk is in its place.
        """
        return self.made == inode and self.is_away

    @property
    def is_away(self) -> bool:
        """Return whether neither the file that was made for it nor its file system is in its place."""
        return self.made != self.there and (self.line is None or self.disk != self.line)


def _others(folder: str, guest: str) -> list[_Look]:
    """Look at the guests beside this one, other than copies of its own folder."""
    parent, found = os.path.dirname(folder), []
    for name in sorted(os.listdir(parent)):
        path = os.path.join(parent, name)
        line, made = recorded(path), made_for(path)
        whose = made or (line.guest if line else None)
        if whose is None or whose == guest or path == folder:
            continue
        disk = None
        with suppress(HeteroError):
            disk = uuid_of(os.path.join(path, DISK))
        its = line if line and line.guest == whose else None
        found.append(_Look(name, whose, its and its.uuid, disk, its and its.inode, _inode(path)))
    return found
