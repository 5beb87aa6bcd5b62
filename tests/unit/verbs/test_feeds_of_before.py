# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a claim that ended before, in the place of a later claim's, tells by which outlet the board was fed
then. If these fail, that is believed of the later one: her power is cut by another's verb, or a word is asked for in
the name of who is long gone.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import (
    boot,
    forget,
    is_refused,
    reconcile,
    record,
    stop,
    swap,
)


@pytest.fixture(params=["no outlet", "another outlet", "her outlet"])
def before(jackie, request):
    """Jackie on board 0, Carol on board 1, in whose record's place is that of Alice, who had the board before."""
    assert not any(result.get("failed") for result in jackie.provision("alice"))
    alices = json.loads(record(jackie, 1).read_text())
    assert not any(result.get("failed") for result in [*jackie.terminate("alice"), *jackie.provision("carol")])
    outlets = {"no outlet": None, "another outlet": "3", "her outlet": "2"}
    alices["fed"] = outlets[request.param] and dict(alices["fed"], outlet=outlets[request.param])
    record(jackie, 1).write_text(json.dumps(alices))
    return jackie


def test_a_board_whose_own_record_is_lost_may_be_fed_by_any_outlet(before):
    """Lost: Carol's power, by a stop of Jackie's, whose record is of an earlier release, and swapped outlets."""
    forget(before, 0)
    swap(before)
    result = stop(before)
    is_refused(result, "carol on board1")
    assert (before.outlets(), "alice" in result["msg"]) == ({"1": "on", "2": "on"}, False)
    swap(before)
    for _turn in range(2):  # a word answers one question
        reconcile(before, adopt=["carol"])
    assert not stop(before).get("failed")
    assert before.outlets() == {"1": "off", "2": "on"}


def test_a_board_whose_record_names_its_outlet_is_not_kept_from_it(before):
    """Lost: each reboot of Jackie's, to what was true of Alice."""
    alices = json.loads(record(before, 1).read_text())
    alices["fed"] = json.loads(record(before, 0).read_text())["fed"]
    record(before, 1).write_text(json.dumps(alices))
    assert not boot(before, "rebooted", how="hard").get("failed")
