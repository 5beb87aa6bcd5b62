# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pdu_mgr on a node whose database is older than a claim. If these fail, a hand that was to be refused cuts a tenant's
power: the record of her claim, or her root, says that she has the board.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


@pytest.fixture
def older(site):
    """Jackie runs on board 0; the database is a copy from before her claim."""
    copy = site.copy_when_off()
    assert not any(result.get("failed") for result in site.provision())
    put_back(site, copy)
    site.tftp.mkdir(exist_ok=True)
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    return site


def switched(site, outlet, mode, *words):
    """What the command ends with, and the outlet's power then."""
    code = pdu_mgr.main(["pdu-a", outlet, mode, "--config", site.params["config"], *words])
    return code, site.outlets()[outlet]


@pytest.mark.parametrize("left", ["root and record", "root", "record", "record that cannot be read"])
def test_a_board_that_only_its_root_or_record_says_is_somebodys_is_refused(older, left):
    """Lost: a tenant's power, to a script that trusts in the refusal."""
    record, root = older.state / "claims" / "board0.json", older.state / "board-roots" / "fs_0"
    if left == "root":
        record.unlink()
    elif left != "root and record":
        root.rename(root.with_name("aside"))
    if "cannot" in left:
        record.write_text("{")
    note = older.module("board_info")["boards"][0]["note"]
    with pytest.raises(Refused) as refused:
        switched(older, "1", "2")
    way = "have ansible-playbook hetero.compute.reconcile adopt it, or add --force"
    assert str(refused.value) == f"outlet 1 of pdu-a: feeds board0, of which status says: {note}: {way}"
    assert older.outlets()["1"] == "on"
    assert switched(older, "1", "2", "--force") == (0, "off")


def test_a_free_board_beside_it_is_switched(older):
    """Lost: an operator's hand."""
    assert switched(older, "2", "1") == (0, "on")


def test_a_board_whose_plug_was_moved_in_the_wiring_since_is_refused(older):
    """Lost: her power, where her board is still fed by the outlet that the wiring named before."""
    config = json.loads(Path(older.params["config"]).read_text())
    config["boards"]["0"]["outlet"] = "3"
    Path(older.params["config"]).write_text(json.dumps(config))
    with pytest.raises(Refused, match="feeds board0, of which status says: has the root of jackie"):
        switched(older, "1", "2")
