# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An outlet that is neither on nor off, and stays so, though an order "off" is obeyed and reads as off:

- a port with PoE that is enabled and where nothing asks for power is "searching" (snmp_tables.py): the cable was
  pulled, or the board is broken;
- a port of a hub is "unknown (off and on)" as soon as its tenant's USB gadget names itself so (test_uhubctl.py,
  test_what_is_plugged_in_cannot_say_that_it_is_off_or_another).

If these fail, no verb ends the instance, and none that refuses says what would go: the tenant of the second one keeps
his board for ever, and of the first one the next cable gets power.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopted_unwatched import REQUEST

SEARCHING, FORGED = "searching", "unknown (off and on)"


@pytest.fixture(params=[SEARCHING, FORGED])
def neither(request, site):
    assert not any(result.get("failed") for result in site.provision())
    site.pdu(board0=request.param)
    if request.param == SEARCHING:
        boot = site.run_folder / "fake-boots" / "board0"
        boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))
    return site


def verb(site, state):
    return site.module("instance", kind="board", instance="jackie", owner="jackie", timeout=10, state=state)


def test_its_end_switches_it_off(neither):
    """Lost: a board, for ever: the order "off" is never given."""
    result = verb(neither, "absent")
    assert not result.get("failed"), result["msg"]
    assert (neither.outlets()["1"], neither.board_of("jackie")) == ("off", None)


def test_an_end_by_an_outlet_that_its_pdu_does_not_know_costs_no_board(neither, monkeypatch):
    """Lost: a sound board, put out of use for a slip in its outlet's name; or the root under a board that runs."""
    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", lambda self, asked, state: {one: Answer(False, "none such") for one in asked})
        result = verb(neither, "absent")
    assert "PDU said none such" in result["msg"]
    assert (neither.record(0).state, neither.board_of("jackie")) == ("shutting down", 0)
    assert neither.root_is_whole(0)
    assert not verb(neither, "absent").get("failed")


def test_its_stop_says_who_switches_it(neither):
    """Lost: what to do. The way that is said is gone here."""
    said = verb(neither, "stopped")["msg"]
    assert "once nobody is at work there, switch pdu-a outlet 1 off (pdu_power)" in said
    neither.cut(0)
    assert not verb(neither, "stopped").get("failed")


def test_a_lease_that_is_over_ends(neither):
    """Lost: the board, to whoever wants to keep it: the reaper says "it is tried again", for ever."""
    neither.expire()
    said = neither.reap()
    assert neither.board_of("jackie") is None, (neither.outlets(), said)


def test_one_that_never_had_power_keeps_its_outlet(site):
    """Lost: the power of who may be at work on a board that was given away while it was on for nobody."""
    assert not site.module("board_claim", **REQUEST).get("failed")
    site.pdu(board0=FORGED)
    assert "cannot be read" in verb(site, "absent")["msg"]
    assert site.outlets()["1"] == FORGED


def test_reconcile_says_it(neither):
    """Lost: every word of it."""
    result = neither.module("board_reconcile", timeout=10)
    assert "once nobody is at work there, switch pdu-a outlet 1 off (pdu_power)" in str(result["boards"])
