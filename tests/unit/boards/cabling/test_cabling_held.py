# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cabling check of a board whose wiring names an outlet that another's board had last.

Tests boards/cabling/findings.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import findings, outlet_tests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.cabling import Cabling, Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

HELD = "its wiring names pdu-c outlet 5, by which jackie on board1 had power last"


@pytest.fixture
def check(monkeypatch):
    """A check of one free board, with what it does to outlets."""
    monkeypatch.setattr(outlet_tests, "left_by", lambda *given: None)
    monkeypatch.setattr(outlet_tests, "told_if_served", lambda *given: None)
    work = SimpleNamespace(
        board=SimpleNamespace(id=0, name="board0"),
        pdu="pdu-c",
        outlet="5",
        outlet_name="pdu-c outlet 5",
        record=SimpleNamespace(claim=None, state="power off"),
        say=lambda *given: None,
    )
    one = Cabling(SimpleNamespace(boards={}, wiring=lambda board: Wire(), config=ProxyConfig()), [work], Options(20.0))
    one.did = []
    monkeypatch.setattr(one, "_status", lambda work: one.did.append("asked") or "off")
    monkeypatch.setattr(one, "_look", lambda finding: one.did.append("switched"))
    return one


@pytest.mark.parametrize("held", [HELD, None])
def test_an_outlet_that_was_anothers_last_is_not_switched(check, monkeypatch, held):
    """Lost: a tenant's peace: the board that was stopped comes up by a check of the one beside it."""
    feeds = SimpleNamespace(held_by=lambda board: held, unknown=lambda board: {})
    monkeypatch.setattr(outlet_tests, "Feeds", lambda proxy: feeds)
    (finding,) = check.findings
    check._test(finding)
    assert check.did == ([] if held else ["asked", "switched"])
    if held:
        assert (finding.verdict, finding.text) == ("skipped", f"not tested: {HELD}")


def test_records_that_cannot_be_looked_at_keep_an_outlet_as_it_is(check, monkeypatch):
    """Lost: the same, where nobody knows whose the outlet is."""

    def unread(proxy):
        raise HeteroError("cannot be read", "claims", "mend it")

    monkeypatch.setattr(outlet_tests, "Feeds", unread)
    (finding,) = check.findings
    check._test(finding)
    assert (finding.verdict, finding.text) == ("skipped", "not tested: claims: cannot be read: mend it")
    assert (check.did, check._down) == ([], {})


KEY = presence.OWN_KEY


@pytest.mark.parametrize(
    ("power", "ours", "unknown", "shown", "does", "said"),
    [
        ("off", False, {1: "jackie"}, {1: presence.SILENT}, ["asked"], "tested while it runs and shows its key"),
        ("off", False, {1: "jackie"}, {1: presence.ALIVE}, ["asked"], "reconcile -e adopt=jackie"),
        ("off", False, {1: "jackie"}, {1: KEY}, ["asked", "switched"], None),
        ("off", False, {1: "jackie", 2: "eve"}, {1: KEY, 2: presence.SILENT}, ["asked"], "may feed eve on board2:"),
        ("off", False, {1: "jackie", 2: None}, {1: KEY, 2: presence.SILENT}, ["asked"], "finds nothing wrong with"),
        ("off", False, {7: "jackie"}, {}, ["asked"], "may feed jackie on board7"),
        # a check that was cut off has left it on: it may be why the board shows its key
        ("on", True, {1: "jackie"}, {1: KEY}, ["asked"], "may feed jackie on board1"),
        ("on", True, {}, {}, ["asked", "off", "switched"], None),
        ("on", False, {1: "jackie"}, {}, ["asked"], "it feeds something, and is not switched"),
    ],
)
def test_an_outlet_that_may_be_a_lost_board_s_is_not_switched(
    check, monkeypatch, power, ours, unknown, shown, does, said
):
    """Lost: what a tenant has stopped comes up where its record is lost; or no board of the node can be tested."""
    feeds = SimpleNamespace(held_by=lambda board: None, unknown=lambda board: unknown, proxy=check.proxy)
    monkeypatch.setattr(outlet_tests, "Feeds", lambda proxy: feeds)
    monkeypatch.setattr(outlet_tests, "BoardWork", lambda proxy, board, change: SimpleNamespace(board=board))
    monkeypatch.setattr(presence, "shown", lambda work: shown[work.board])
    monkeypatch.setattr(check, "_ours", lambda work: ours)
    monkeypatch.setattr(check, "_status", lambda work: check.did.append("asked") or power)
    monkeypatch.setattr(check, "_switch", lambda work, state: check.did.append(state))
    check._drivers = SimpleNamespace(of=lambda board: None)
    check.proxy.boards, check.proxy.board = range(5), lambda number: number
    check.proxy.store = SimpleNamespace(record=lambda number: None)
    (finding,) = check.findings
    check._test(finding)
    assert check.did == does
    assert (finding.verdict == findings.UNTESTED) is (said is None)
    assert said is None or said in finding.text


def test_a_board_whose_driver_cannot_look_is_not_known_to_run(check, monkeypatch):
    """Lost: the same, where the other board's wiring is wrong."""

    def wrong(board):
        raise HeteroError("no such driver", "board1", "correct it")

    monkeypatch.setattr(outlet_tests, "BoardWork", lambda proxy, board, change: SimpleNamespace(board=board))
    check._drivers = SimpleNamespace(of=wrong)
    check.proxy.boards, check.proxy.board = range(5), lambda number: number
    check.proxy.store = SimpleNamespace(record=lambda number: None)
    assert check._runs(1) is False
