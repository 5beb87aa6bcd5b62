# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node's folders, which stay where they are while anybody has a board: its kernels, its root and its record lie
there, and a node that looks elsewhere knows none of its instances.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...site.proxy_config import read_config
from . import left_out_boards

if TYPE_CHECKING:
    from ...core.findings import Findings
    from .setup_plan import Plan

#: {field of a plan and key of proxy.json: what lies there}.
FOLDERS = {"tftp_root": "boot entries", "state_folder": "roots and records"}
MOVED = "is {after}, and in {before} are the {what} of {who}"
STAYS = "set it when no board has an instance; until then {option}: {before}"


def moved(plan: Plan, found: Findings) -> None:
    """Report a defect for each folder that is to be another one than the node has, while anybody has a board there."""
    try:
        config = read_config(plan.config)
    except HeteroError:
        return  # a new node, or one whose file is written anew
    users = left_out_boards.users(replace(plan, state_folder=config.state_folder), found)
    who = ", ".join(f"{instance} on board{board}" for board, instance in sorted(users.items()))
    for key, what in FOLDERS.items():
        before, after = getattr(config, key), getattr(plan, key)
        if users and os.path.realpath(before) != os.path.realpath(after):
            option = f"tftp_proxy_{key}"
            text = MOVED.format(after=after, before=before, what=what, who=who)
            found.defect(option, text, STAYS.format(option=option, before=before))
