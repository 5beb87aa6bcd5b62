# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where files on the controller are that variables of roles name, and those that a person names to be written."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Mapping

#: Links that are followed one after the other, as Linux does (path_resolution(7)).
LINKS = 40


def look_for(lookup: Any, variables: Mapping[str, Any], path: str) -> tuple[str | None, str]:
    """Return (path of the file, ""), or (None, in words that there is none).

    It is looked for where tasks look for files, beside the inventory, and where the play was begun.

    :param lookup: a LookupBase, which knows where tasks look.
    """
    beside = [str(variables.get("inventory_dir") or ""), os.getcwd()]
    found = lookup.find_file_in_search_path(variables, "files", path, ignore_missing=True) or _in(beside, path)
    if found:
        return found, ""
    where = "" if os.path.isabs(path) else f" ({' or '.join(dict.fromkeys(filter(None, beside)))})"
    return None, f"there is no such file on the controller{where}"


def _in(folders: list[str], path: str) -> str | None:
    paths = [os.path.join(folder, path) for folder in folders if folder]
    return next((one for one in paths if os.path.isfile(one)), None)


def led_to(path: str) -> str:
    """Return the path of the file to which a name leads by links, or the name itself where it is none.

    In a folder such as /tmp a link may be anybody's, by which a file would be written over that is not theirs.

    :raises OSError: it is a link that neither this user nor root has made, or leads in a circle.
    """
    for _link in range(LINKS):
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(seen.st_mode):
            return path
        if seen.st_uid not in (0, os.geteuid()):
            raise OSError(errno.EPERM, f"{path} is a link that another user has made", path)
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
