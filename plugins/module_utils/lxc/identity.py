# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container it is: a key that neither a new container of the same name has, nor a copy of it.

The id stands in the container's configuration with the number of the folder that it was given to: a copy lies in
another folder. With it goes the line that includes what persistence.py writes.
"""

from __future__ import annotations

import os
import re
import uuid

from ..errors import naming

FOLDER = "hetero.d"
ID = re.compile(r"^# hetero\.compute: id (?P<id>[0-9a-f]{32}) of folder (?P<folder>\d+)$", re.MULTILINE)
#: Our lines, those of a container that this one was copied from as well.
OURS = re.compile(rf"^(# hetero\.compute: .*|lxc\.include\s*=\s*.*/{re.escape(FOLDER)}/\s*)\n?", re.MULTILINE)


def folder_of(container):
    """The folder of what its configuration includes from us."""
    return os.path.join(container.folder, FOLDER)


def key_of(container):
    """lxcpath/name#id, None for a container that is not there, has no id, or has another's."""
    try:
        with open(container.config_file, encoding="utf-8", errors="surrogateescape") as file:
            found = list(ID.finditer(file.read()))
        number = os.stat(container.folder).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not found or int(found[-1].group("folder")) != number:
        return None
    return f"{container.folder}#{found[-1].group('id')}"


def give_id(container):
    """Give it an id of its own and have its configuration include our folder; returns the key.

    A folder that is not there is no error to LXC, as its name ends with a slash; a file would be, to lxc-ls as well.
    """
    path = container.config_file
    with naming(path):
        number = os.stat(container.folder).st_ino
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = OURS.sub("", file.read())
        end = "" if text.endswith("\n") or not text else "\n"
        lines = f"# hetero.compute: id {uuid.uuid4().hex} of folder {number}\nlxc.include = {folder_of(container)}/\n"
        os.makedirs(folder_of(container), mode=0o700, exist_ok=True)
        replace_file(path, f"{text}{end}{lines}", os.stat(path))
    container.reload()
    return key_of(container)


def replace_file(path, text, like=None, mode=0o600):
    """Write a file at once and for good; whoever reads it meanwhile has the old one, whole."""
    new = f"{path}.hetero-new"
    with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode if like is None else like.st_mode & 0o7777)
        if like is not None:
            os.fchown(file.fileno(), like.st_uid, like.st_gid)
        os.fsync(file.fileno())
    os.replace(new, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
