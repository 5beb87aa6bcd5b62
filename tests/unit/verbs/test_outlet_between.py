# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU or BMC says of an outlet neither on nor off ("unknown (PoweringOff)", "pending") when module board_image reads
it before it removes what a board boots from. If this fails, the user of terminate_instance gets a traceback in place of
what is wrong and what to do, and the other boards of the request are not looked at.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import stop

REMOVAL = dict(boards=[0], state="absent", instance="jackie")


@pytest.mark.parametrize("state", ["unknown (PoweringOff)", "pending"])
def test_an_outlet_that_is_neither_is_told_of(jackie, state):
    """Lost: why the end did not go on, which board, and what to do."""
    assert not stop(jackie).get("failed")
    jackie.pdu(board0=state)
    removed = jackie._module("board_image", **REMOVAL)
    assert not removed.get("broken"), removed
    assert removed.get("failed"), removed
    assert jackie.root_is_whole(0)
    assert "board0: whether its outlet is off is not known" in removed["msg"]
    assert state in removed["msg"]
