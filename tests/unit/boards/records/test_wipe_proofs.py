# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written down of a wipe. Whole wipes are in disk/test_wipes.py."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import disk_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire


@pytest.mark.parametrize(("wired", "stands"), [(["/dev/sda"], True), (["/dev/sda", "/dev/sdb"], False)])
def test_a_proof_stands_only_for_all_disks_that_the_board_has_now(tmp_path, wired, stands):
    """Lost: what a tenant left on a disk that was named while the others were wiped, told as proven."""
    proxy = SimpleNamespace(
        folder=lambda *names: os.path.join(tmp_path, *names), disks=lambda board: wired, wiring=lambda board: Wire()
    )
    board = SimpleNamespace(id=0, name="board0", mac="00:1a:ca:00:57:90")
    record = {"time": 0, "disks": [{"device": "/dev/sda", "proven": True}]}
    if stands:
        disk_records.keep(proxy, board, record)
    else:
        with pytest.raises(HeteroError, match="board0: the proof of its wipe cannot be read back: look at "):
            disk_records.keep(proxy, board, record)
    assert (disk_records.unwiped(proxy, board) == []) == stands
