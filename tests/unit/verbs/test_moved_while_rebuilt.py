# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebuild ended after it was written down and before its board was stopped (its controller was lost): jackie's board
is on and runs from the old root. If this fails, set-up takes it for one for which nothing was made yet, and writes a
boards file that gives her address to another board.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import OTHER_KEY


def defects(site):
    """What set-up says against a file that moves board 0."""
    rows = (site.folder / "tilera_boards").read_text()
    (site.tftp / "tilera_boards").write_text(rows)
    plan = Plan(
        server="10.0.2.254",
        state_folder=str(site.state),
        tftp_root=str(site.tftp),
        config=str(site.folder / "proxy.json"),
        boards_source="files/tilera_boards",
        boards_text=rows.replace("10.0.2.1 ", "10.0.2.9 "),
    )
    return [str(defect) for defect in preflight.look(plan).defects if "gives board0" in str(defect)]


def test_a_board_that_is_on_keeps_its_row(jackie):
    """Lost: jackie's address."""
    assert len(defects(jackie)) == 1, "she runs"
    asked = jackie.module("board_rebuild", instance="jackie", image="debian-13", ssh_public_key=OTHER_KEY)
    assert asked["to_rebuild"] == [0]
    record = jackie.record(0)
    assert (jackie.outlets()["1"], record.state, record.power) == ("on", "running", "on")
    assert len(defects(jackie)) == 1
