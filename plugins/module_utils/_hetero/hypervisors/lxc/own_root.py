# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file system is a container's root: the UUID of the one that was made for it, in a line of its configuration.

Files of two containers that were put back into each other's places are so told apart before a key is written into one,
before it is started, and before it is removed. A container of an earlier release has no such line; it gets that of the
file system that is found there first.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Mapping, NamedTuple

from ...core.errors import HeteroError, Refused, naming
from ...files.file_system import is_empty, uuid_of
from ...files.whole_file import as_before, write_whole
from ...roots import machine_identity
from . import identity
from .config_text import text_of
from .liblxc import Container

#: The line that names a root. identity.OURS matches it, so it stays where the rest of a configuration is put back.
LINE = re.compile(r"^# hetero\.compute: root (?P<uuid>[0-9a-f-]{36})$", re.MULTILINE)
ANOTHERS = "this is the root of container {other}, not of {name}"
SWAP = "put each back in its own place (mv, which does no harm to one that runs), then run this again"
COPY = "this is a copy of the root of container {other}, or has taken its UUID: not {name}'s"
SAME = "this and the root of container {other} are copies of one another, and nobody can tell which is the first"
#: Nothing is lost by it, whichever of them it is.
ASIDE = "remove nothing: move the copy out of its folder, and put the container's own root there, then run this again"
UNKNOWN = "this is not the root that was made for {name} (its file system is {found}, not {own})"
#: tune2fs wants one that was checked since it was mounted last.
TAKE = (
    "put its own back; where this one is to be its root from now on, these say so: e2fsck -fp {file}; "
    "tune2fs -U {own} {file}"
)
#: Such as one whose first superblock is damaged: e2fsck -b finds a copy of it.
LOST = "this cannot be read, and may be the root of container {other}, whose own is not in its place"
LOST_WAY = "put that one's own into its place, or move this file out of its folder, then run this again"
KEY = "this has the ssh host key of {other}: it is that one's root, or a copy of it, and not {name}'s"
KEY_WAY = "put each back in its own place (mv), a copy out of this folder, which loses nothing, then run this again"
UNREAD = "this may be the root of container {other}, whose configuration says which is its own, and cannot be read"


def recorded(configuration: str) -> str | None:
    """Return the UUID of the file system that was made for a container; None where its configuration has none.

    :param configuration: the path of that file.
    :raises Refused: it cannot be read.
    """
    found = LINE.findall(text_of(configuration) or "")
    return str(found[-1]) if found else None


def record(container: Container, file: str) -> None:
    """Write down, where nothing is written yet, that the file system in `file` is a container's root.

    :raises HeteroError: it cannot be written.
    """
    found = uuid_of(file)
    if found is None or recorded(container.config_file) is not None:
        return
    path = container.config_file
    with naming(path):
        text = text_of(path) or ""
        end = "" if text.endswith("\n") or not text else "\n"
        write_whole(path, f"{text}{end}# hetero.compute: root {found}\n", **as_before(path, 0o600))
    container.reload()


def must_be_own(container: Container, file: str) -> None:
    """Raise Refused if the file system in `file`, a container's folder, was made for another container.

    A file system that is too damaged to be read is the container's own if all other containers' file systems are in
    their places. A configuration of an earlier release does not say which root is the container's; then any container
    whose configuration cannot be read may be the one that it was made for.
    """
    found, own = uuid_of(file), recorded(container.config_file)
    if (found is None and is_empty(file)) or (found is not None and found == own):
        return
    name = container.name
    looks = (_look(container, other, os.path.basename(file)) for other in sorted(os.listdir(container.lxcpath)))
    others = [look for look in looks if look.name != name and not look.is_of_this]
    if found is not None:
        _refuse_known(name, file, found, others)
    for look in others:
        if found is None and look.line not in (None, look.root) and not look.is_copy:
            raise Refused(LOST.format(other=look.name), file, LOST_WAY)
        if look.unread is not None and look.was_ours:
            raise Refused(UNREAD.format(other=look.name), file, str(look.unread))
    if None not in (found, own):
        raise Refused(UNKNOWN.format(name=name, found=found, own=own), file, TAKE.format(own=own, file=file))


def _refuse_known(name: str, file: str, found: str, others: list[_Look]) -> None:
    """Raise Refused if the file system in a container's folder, whose UUID is known, is that of one of the others."""
    its = sorted((look for look in others if look.line == found), key=lambda look: look.is_copy)
    if its and its[0].root != found:
        raise Refused(ANOTHERS.format(other=its[0].name, name=name), file, SWAP)
    if its:
        raise Refused(COPY.format(other=its[0].name, name=name), file, ASIDE)
    for look in others:
        if look.has_config and look.line is None and look.root == found:
            raise Refused(SAME.format(other=look.name), file, ASIDE)


def must_have_no_others_key(container: Container, own: str | None, others: Mapping[str, str]) -> None:
    """Raise Refused if a container's root, a plain folder that has no UUID, has the ssh host key of another.

    :param own: the container's public host key.
    :param others: {public host key: the name of the container or guest that has it}.
    """
    root = os.path.join(container.folder, "rootfs")
    found = None
    if os.path.isdir(root):
        with suppress(HeteroError):  # whose it is cannot be said then
            found = machine_identity.host_key(root)
    if found is not None and found != own and found in others:
        raise Refused(KEY.format(other=others[found], name=container.name), root, KEY_WAY)


class _Look(NamedTuple):
    """What is found in the folder of another container, or of anything else beside this one's.

    :param line: the UUID of its root by its configuration.
    :param root: the UUID of the file system that lies in it.
    :param is_copy: whether no container of ours was made in it: it may be a copy of the folder of one.
    :param is_of_this: whether it is a copy of this container's folder, whose configuration may be gone since.
    :param unread: why its configuration cannot be read.
    :param was_ours: whether a container of ours is or was in it, by the other files.
    """

    name: str
    line: str | None
    root: str | None
    is_copy: bool
    is_of_this: bool
    has_config: bool
    unread: Refused | None
    was_ours: bool


def _look(container: Container, name: str, root: str) -> _Look:
    """Look at the folder beside a container's.

    :param root: the name of the file with a container's root.
    """
    # by its path: a folder that somebody has put there may have any name, which is no container's here
    folder = identity.Folder(os.path.join(container.lxcpath, name))
    config, file = folder.config_file, os.path.join(folder.folder, root)
    line = made = unread = uuid = None
    with suppress(HeteroError):  # whose root it is then says its configuration
        uuid = uuid_of(file)
    try:
        line, made = recorded(config), identity.written(config)
    except Refused as error:
        unread = error
    number = os.stat(container.folder).st_ino
    own = identity.written(container.config_file)
    is_copy = unread is not None or identity.key_of(folder) is None
    is_of_this = is_copy and made is not None and (made[1] == number if own is None else made[0] == own[0])
    was_ours = os.path.lexists(file) or os.path.lexists(os.path.join(folder.folder, identity.FOLDER))
    return _Look(name, line, uuid, is_copy, is_of_this, os.path.lexists(config), unread, was_ours)
