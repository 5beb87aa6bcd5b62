# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is there as a whole or not at all, also after a power cut. What is in it is its writer's business."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
from typing import Any


def write_whole(path: str, data: bytes | str, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
    """Have `data`, bytes or text, in the file, in one step: whoever reads it has what was there or what is to be there.

    It is written beside it, as `.NAME.THREAD~`, a name that no server or tool here reads; what writers that were
    killed have left there is removed.

    :param owner: (user id, group id); without it the file is its writer's.
    :raises OSError: of the folder, the disk, or a permission.
    """
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    remove_left(path)
    scratch = os.path.join(folder, f".{name}.{threading.get_native_id()}~")
    try:
        with open(scratch, "xb", opener=_private) as file:
            file.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
            file.flush()
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
    sync_folder(folder)


def as_before(path: str, mode: int) -> dict[str, Any]:
    """A file's mode and owner as arguments for write_whole(), or `mode`; only root can give files away."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return {"mode": mode}
    owner = (seen.st_uid, seen.st_gid) if os.geteuid() == 0 else None
    return {"mode": stat.S_IMODE(seen.st_mode), "owner": owner}


def remove_left(path: str) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    folder, name = os.path.split(path)
    for entry in os.listdir(folder):
        left = re.fullmatch(rf"\.{re.escape(name)}\.([0-9]+)~", entry)
        if left and (int(left[1]) == threading.get_native_id() or not os.path.exists(f"/proc/{left[1]}")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, entry))


def sync_folder(folder: str) -> None:
    """Have it survive a power cut which names are in the folder."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
