# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pdu_mgr on a board whose line fell out of the boards file while the database is older than its claim. If these fail,
a script (or Nova) cuts a tenant's power whose root and record lie on this node.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


def test_the_outlet_that_the_wiring_names_for_it_is_not_switched_off(site):
    """Lost: jackie's power. reconcile says of the same board: record of the claim of jackie on board0."""
    copy = site.copy_when_off()
    assert not any(result.get("failed") for result in site.provision())
    put_back(site, copy)
    boards = Path(site.params["boards_file"])
    boards.write_text("".join(boards.read_text().splitlines(True)[1:]))
    shutil.copy(boards, site.tftp / "tilera_boards")
    assert any("jackie" in text for text in reconcile(site)["others"])
    command = ["pdu-a", "1", "2", "--config", site.params["config"]]
    with pytest.raises(Refused, match="feeds board0, not in the boards file, which has the root of jackie"):
        pdu_mgr.main(command)
    assert site.outlets()["1"] == "on"
    root = site.state / "board-roots" / "fs_0"
    root.rename(root.with_name("aside"))
    with pytest.raises(Refused, match="which is jackie's by the record of its claim"):
        pdu_mgr.main(command)
    assert pdu_mgr.main([*command, "--force"]) == 0
    assert site.outlets()["1"] == "off"


def test_the_outlet_of_a_gone_board_of_which_nothing_is_known_is_switched(site):
    """Lost: an operator's hand, on what the wiring still names."""
    boards = Path(site.params["boards_file"])
    boards.write_text("".join(boards.read_text().splitlines(True)[1:]))
    site.tftp.mkdir(exist_ok=True)
    shutil.copy(boards, site.tftp / "tilera_boards")
    assert pdu_mgr.main(["pdu-a", "1", "1", "--config", site.params["config"]]) == 0
