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

from ...core.errors import Refused, naming
from ...files.file_system import uuid_of
from ...files.whole_file import as_before, write_whole
from .liblxc import Container, containers

#: One of the lines that identity.OURS matches, so that it stays where the rest of a configuration is put back.
LINE = re.compile(r"^# hetero\.compute: root (?P<uuid>[0-9a-f-]{36})$", re.MULTILINE)
ANOTHERS = "this is the root of container {other}, not of {name}"
SWAP = "put each back in its own place (mv, which does no harm to one that runs), then run this again"
UNKNOWN = "this is not the root that was made for {name} (its file system is {found}, not {own})"
TAKE = "put its own back; where this one is to be its root from now on, tune2fs -U {own} {file} says so"


def recorded(configuration: str) -> str | None:
    """Return the UUID of the file system that was made for a container; None where its configuration has none.

    :param configuration: the path of that file.
    """
    try:
        with open(configuration, encoding="utf-8", errors="surrogateescape") as file:
            found = LINE.findall(file.read())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
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
        with open(path, encoding="utf-8", errors="surrogateescape") as written:
            text = written.read()
        end = "" if text.endswith("\n") or not text else "\n"
        write_whole(path, f"{text}{end}# hetero.compute: root {found}\n", **as_before(path, 0o600))
    container.reload()


def must_be_own(container: Container, file: str) -> None:
    """Raise Refused if the file system in `file`, a container's folder, was made for another container.

    One that is damaged so that nothing can be read of it is nobody else's.
    """
    found, own = uuid_of(file), recorded(container.config_file)
    if found in (None, own):
        return
    other = _other(container, file, found)
    name = container.name
    if other is not None:
        raise Refused(ANOTHERS.format(other=other, name=name), file, SWAP)
    if own is not None:
        raise Refused(UNKNOWN.format(name=name, found=found, own=own), file, TAKE.format(own=own, file=file))


def _other(container: Container, file: str, found: str | None) -> str | None:
    """Return the name of the other container in the same folder whose root has this UUID, or None.

    One that has its own root is none whose was put here: root in a privileged container can set its root's UUID.
    """
    for name in containers(container.lxcpath):
        # by its path: a folder that somebody has put there may have any name, which is no container's here
        folder = os.path.join(container.lxcpath, name)
        is_its = name != container.name and recorded(os.path.join(folder, "config")) == found
        if is_its and uuid_of(os.path.join(folder, os.path.basename(file))) != found:
            return name
    return None
