# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks of boards that count in one boot of this machine only: a file for each board, in a folder of the run folder.

Those who write a mark decide what it says: boot/power_marks.py and power/unseen_cuts.py. A mark that cannot be written
is left out.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Mapping

from ...core.errors import BadInput
from ...core.json_file import read_object
from ...files.whole_file import write_hint
from ...site.node_clock import boot_id

if TYPE_CHECKING:
    from .proxy import Proxy


def keep(proxy: Proxy, folder: str, board: str, mark: Mapping[str, Any]) -> None:
    """Write the mark of a board, by its name, in place of an earlier one."""
    write_hint(_path(proxy, folder, board), json.dumps({"boot": boot_id(), **mark}))


def kept(proxy: Proxy, folder: str, board: str) -> dict[str, Any] | None:
    """Return the mark of a board; None where there is none, or none of this boot."""
    try:
        mark = read_object(_path(proxy, folder, board), "")
    except BadInput:
        return None
    return mark if mark.get("boot") == boot_id() else None


def _path(proxy: Proxy, folder: str, board: str) -> str:
    return os.path.join(proxy.config.run_folder, folder, f"{board}.json")
