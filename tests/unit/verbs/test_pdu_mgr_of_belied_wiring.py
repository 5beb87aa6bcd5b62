# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's board was seen to live while the outlet of its wiring was off, or what feeds it is not known. All verbs
refuse an outlet that may feed it; if these fail, pdu_mgr (Nova calls it) cuts her power by the outlet of a free board.
"""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import record
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, plugs

__all__ = ["hasty"]


@pytest.fixture
def moved(jackie):
    """Jackie's plug is in outlet 2, which is on; the wiring gives that to board 1, which is free."""
    jackie.pdu(board1="on")
    plugs(jackie, True)
    shutil.copy(jackie.params["boards_file"], jackie.tftp / "tilera_boards")
    return jackie


def off(site):
    return pdu_mgr.main(["pdu-a", "2", "2", "--config", site.params["config"]])


def test_belied(moved):
    boot(moved, "rebooted", how="hard")
    assert json.loads(record(moved).read_text())["fed"]["belied"]
    assert lives(moved, 0)
    with pytest.raises(Refused, match="may feed board0, which jackie of jackie has: what does is not known"):
        off(moved)
    assert lives(moved, 0)


def test_record_lost(moved):
    record(moved).unlink()
    moved.module("tilera_boot", boards=[1], instance="", state="stopped", timeout=10)
    assert lives(moved, 0)
    with pytest.raises(Refused, match="may feed board0, which jackie of jackie has: what does is not known"):
        off(moved)
    assert lives(moved, 0)
