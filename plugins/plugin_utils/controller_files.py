# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where files on the controller are that variables of roles name."""

from __future__ import annotations

import os
from typing import Any, Mapping


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
