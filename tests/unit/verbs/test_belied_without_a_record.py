# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is learnt of a plug where the board's own record is lost or cannot be read. If these fail, each reboot cuts the
other tenant's board again, while it is said that the outlet is not switched again.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import record
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import boots, hasty, plugs, swapped

__all__ = ["hasty", "swapped"]


@pytest.mark.parametrize("how", ["good", "lost", "unreadable"])
def test_an_outlet_that_was_belied_is_not_switched_again(swapped, how):
    """Lost: Carol's power, with each further reboot of Jackie's."""
    if how == "lost":
        record(swapped).unlink()
    elif how == "unreadable":
        record(swapped).write_text("{")
    said = boot(swapped, "rebooted", how="hard")["msg"]
    assert "reconcile -e adopt=jackie" in said
    cut = boots(swapped)
    assert boot(swapped, "rebooted", how="hard").get("failed")
    assert boots(swapped) == cut, said
    plugs(swapped, False)
    for _turn in range(2):  # a word answers one question: what the record says, and then what feeds the board
        reconcile(swapped, adopt=["jackie"])
    result = stop(swapped)
    assert (result.get("failed"), swapped.outlets()) == (False, {"1": "off", "2": "on"}), result.get("msg")


def test_a_board_that_is_dark_proves_the_plug_that_is_back(swapped):
    """Lost: the way out that needs no word: a start by the right plug, and each stop after it."""
    record(swapped).unlink()
    assert boot(swapped, "rebooted", how="hard").get("failed")
    plugs(swapped, False)
    swapped.cut(0)
    assert not boot(swapped).get("failed")
    result = stop(swapped)
    assert (result.get("failed"), swapped.outlets()) == (False, {"1": "off", "2": "on"}), result.get("msg")
