# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module board_image with state=absent refuses to remove what a board runs from. If these fail, it goes by the state
and the outlet that the database has alone, and removes a root under a board at work, as "changed": after a stop that
the PDU acknowledged and did not do, or refused; by an older database; after an outage of the outlet.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import found, reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_start_by_an_older_database import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_start_of_one_switched_by_hand import on_by_itself
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives

__all__ = ["hasty", "put_back"]

REMOVAL = dict(boards=[0], state="absent", instance="jackie")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


def stays(site):
    assert (site.outlets()["1"], lives(site, 0)) == ("on", True)
    removed = site.module("board_image", **REMOVAL)
    assert site.root_is_whole(0), removed["lines"]
    assert "and it may run from it: stop it first" in removed["msg"]


def stays_while_off(site):
    removed = site.module("board_image", **REMOVAL)
    assert site.root_is_whole(0), removed["lines"]
    assert "it is running by the record of its claim, and it may run from it" in removed["msg"]


def goes_once_stopped(site):
    assert not stop(site).get("failed")
    assert not site.module("board_image", **REMOVAL).get("failed"), "the way out"


@pytest.mark.parametrize("fault", ["stuck", "refused"])
def test_the_root_of_a_board_that_its_pdu_did_not_switch_off_stays(jackie, fault):
    """Lost: jackie's root, and with it what runs from it; the error itself said "still on"."""
    jackie.pdu(faults={fault: ["1"]})
    assert "still on" in stop(jackie)["msg"]
    stays(jackie)
    jackie.pdu()
    goes_once_stopped(jackie)


def test_so_does_that_of_one_that_runs_by_its_own_record(jackie, put_back):
    """The same, after a backup of the database was put back which is from a time when she was stopped."""
    put_back()
    stays(jackie)
    jackie.cut(0)
    stays_while_off(jackie)
    goes_once_stopped(jackie)


def test_so_does_that_of_one_whose_outlet_is_on_again(jackie):
    """The same, after an outage that reconcile saw, and that is over."""
    jackie.cut(0)
    told = found(reconcile(jackie))
    on_by_itself(jackie, "running")
    assert jackie.record(0).state == "power off", told
    stays(jackie)
    goes_once_stopped(jackie)


def test_so_does_that_of_one_whose_pdu_does_not_answer(jackie):
    """Nobody knows whether its outlet, which was off, is on again."""
    assert not stop(jackie).get("failed")
    jackie.pdu(faults={"hang": True})
    removed = jackie.module("board_image", timeout=3, **REMOVAL)
    assert jackie.root_is_whole(0), removed["lines"]
    assert "whether its outlet is off is not known" in removed["msg"]
    jackie.pdu()
    assert not jackie.module("board_image", **REMOVAL).get("failed"), "the way out"
