# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are written completely or not at all, also at a power cut. Their writers know what is in them."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
import time
from typing import Any

#: Names in a folder from which on it is not listed for each file that is written there, and seconds until it is again.
MANY, AGAIN = 64, 10.0
#: {folder with MANY names: (monotonic time when it was listed, names in it that writers may have left)}.
_listed: dict[str, tuple[float, list[str]]] = {}


def write_whole(
    path: str, data: bytes | str, mode: int = 0o644, owner: tuple[int, int] | None = None, lasting: bool = True
) -> None:
    """Replace a file's content by `data` in one step: a reader gets the old content or the new one.

    The data are first written beside the file as `.NAME.THREAD~`, a name that no server or tool reads. Such files of
    writers that were killed are removed.

    :param owner: (user id, group id); by default the file belongs to its writer.
    :param lasting: False where the file may be lost, or empty, after a power cut.
    :raises OSError: of the folder, the disk or a permission.
    """
    if not os.path.isabs(path):  # and no more: by its text alone, x/.. is another folder than behind a link x
        path = os.path.join(os.getcwd(), path)
    folder, name = os.path.split(path)
    own = f".{name}.{threading.get_native_id()}~"
    _remove(path, [*_may_be_left(folder), own])
    scratch = os.path.join(folder, own)
    try:
        with open(scratch, "xb", opener=_private) as file:
            file.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
            file.flush()
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            if lasting:
                os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
    if lasting:
        sync_folder(folder)


def write_hint(path: str, text: str) -> None:
    """Write a text for root alone, and its folder where that is missing, if both are possible.

    It is for what a process may do without: on a full disk there is none, or an older one, and none after a power cut.
    """
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, text, 0o600, lasting=False)


def as_before(path: str, mode: int) -> dict[str, Any]:
    """Return a file's mode and owner as arguments for write_whole(), or just `mode` for a new one.

    Only root sets an owner.
    """
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return {"mode": mode}
    owner = (seen.st_uid, seen.st_gid) if os.geteuid() == 0 else None
    return {"mode": stat.S_IMODE(seen.st_mode), "owner": owner}


def remove_left(path: str) -> None:
    """Remove what killed writers of this file left beside it."""
    _remove(path, _scratch(os.listdir(os.path.dirname(path))))


def _may_be_left(folder: str) -> list[str]:
    """Return the names in a folder that killed writers may have left, of AGAIN seconds ago where it has MANY names."""
    at, left = _listed.get(folder, (0.0, []))
    if at and time.monotonic() - at < AGAIN:
        return left
    names = os.listdir(folder)
    left = _scratch(names)
    _listed.pop(folder, None)
    if len(names) >= MANY:
        _listed[folder] = time.monotonic(), left
    return left


def _scratch(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(".") and name.endswith("~")]


def _remove(path: str, names: list[str]) -> None:
    folder, name = os.path.split(path)
    begin = f".{name}."
    for entry in [entry for entry in names if entry.startswith(begin)]:  # one of thousands
        left = re.fullmatch(r"([0-9]+)~", entry[len(begin) :])
        if left and (int(left[1]) == threading.get_native_id() or not os.path.exists(f"/proc/{left[1]}")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, entry))


def sync_folder(folder: str) -> None:
    """Write the names in a folder to the disk, so that they survive a power cut."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
