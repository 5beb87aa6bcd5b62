# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder with a guest's files: what they are called, and for which guest they were made."""

from __future__ import annotations

import os
from typing import Callable

from ...core.errors import Refused
from ...devices.pci.made_guests import DESCRIPTION, MOST, description
from ...files.plain_file import read_at

CONSOLE = "console.log"
DISK = "disk.raw"


def is_whole(folder: str) -> bool:
    """Return whether a guest was made here completely. Its domain may have been removed since."""
    return os.path.exists(os.path.join(folder, DESCRIPTION))


def was_used_since(folder: str, since: float, has_run: Callable[[], bool]) -> bool:
    """Return whether a whole guest was made after a time, and has run.

    Its disk is written before its description: it is newer only where the guest has written to it.
    """
    disk, made = (os.path.join(folder, name) for name in (DISK, DESCRIPTION))
    if not os.path.exists(disk) or os.stat(made).st_mtime <= since:
        return False
    return has_run() or os.stat(disk).st_mtime > os.stat(made).st_mtime


def must_be_readable(folder: str) -> None:
    """Raise Refused if something that is not to be read lies in the place of a guest's description."""
    path = os.path.join(folder, DESCRIPTION)
    if os.path.lexists(path):
        try:
            read_at(path, MOST)
        except OSError as error:
            what = f"cannot be read ({error.strerror}), and says which guest lies there"
            raise Refused(what, path, "nothing is touched: put the guest's own file back") from error


def must_have(word: str, path: str) -> None:
    """Raise Refused if a file of a guest is missing.

    :param word: what it is to the guest: kernel, initrd or root.
    """
    if not os.path.exists(path):
        remedy = "put the file back, or rebuild the instance, which begins with an empty root"
        raise Refused(f"is missing, and with it the guest's {word}", path, remedy)


def made_for(folder: str) -> str | None:
    """Return the UUID of the guest whose files lie in a folder; None where none do, or that cannot be read."""
    made = description(folder)
    return None if made is None else made.findtext("uuid")
