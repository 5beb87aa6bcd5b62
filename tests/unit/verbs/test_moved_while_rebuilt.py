# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rebuild ended after it was written down and before its board was stopped (its controller was lost): jackie's board
is on and runs from the old root. If this fails, set-up takes it for one for which nothing was made yet, and writes a
boards file that gives her address to another board.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_moved_while_booting import said_of_a_move


def test_a_board_that_is_on_keeps_its_row(jackie):
    """Lost: jackie's address."""
    assert len(said_of_a_move(jackie)) == 1, "she runs"
    asked = jackie.module("board_rebuild", instance="jackie", image="debian-13", ssh_public_key=OTHER_KEY)
    assert asked["to_rebuild"] == [0]
    record = jackie.record(0)
    assert (jackie.outlets()["1"], record.state, record.power) == ("on", "running", "on")
    assert len(said_of_a_move(jackie)) == 1
