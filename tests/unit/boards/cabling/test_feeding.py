# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of an outlet that may feed somebody's board. Whole nodes are in verbs/test_recabling.py."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.cabling import SWITCH, Cabling
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.outlet_tests import OURS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.doubt import Doubt
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


def test_each_record_to_be_removed_is_named():
    """Lost: the way out of records that nobody can read, of boards that nobody has."""
    feeds = SimpleNamespace(proxy=SimpleNamespace(boards=range(3)))
    doubt = Doubt(feeds, feeds.proxy.boards[0], None, Fed("pdu-a", "1"), None, {}, {1: None, 2: None})
    both = "board1 and board2"
    assert doubt.remedy.endswith(f"; remove the record of {both} once it is known that nobody has {both}")


def claim(board, instance):
    return SimpleNamespace(
        board=board, instance=instance, created=1.0, is_same=lambda other: other.instance == instance
    )


def kept(board, instance, fed=None, anew=False):
    return SimpleNamespace(claim=claim(board, instance), fed=fed, anew=anew)


@pytest.fixture
def feeds():
    """Of boards 0 to 6, which are at outlets 1 to 7 of pdu-a by their wiring."""

    def make(kept_of, lost=(), power=None):
        def read(board):
            if isinstance(kept_of[board], Exception):
                raise kept_of[board]
            return kept_of[board]

        store = SimpleNamespace(
            lost=lambda: [claim(board, "x") for board in lost],
            kept_boards=lambda: list(kept_of),
            begun=dict,
            kept=read,
            is_copy=lambda error: False,
            claims=lambda: [claim(3, "eve")],
            records=lambda boards: {board: SimpleNamespace(power=(power or {}).get(board)) for board in boards},
        )
        pdus = {"pdu-a": {"host": "10.0.100.1"}, "pdu-b": {"host": "10.0.100.2"}}
        return Feeds(
            SimpleNamespace(
                store=store,
                config=ProxyConfig(pdus=pdus),
                outlet=lambda board: ("pdu-a", str(board.id + 1)),
                boards={number: board(number) for number in range(7)},
            )
        )

    return make


def board(number):
    return SimpleNamespace(id=number, name=f"board{number}")


def test_what_fed_a_board_is_known_by_the_record_of_its_claim(feeds):
    """Lost: the outlet that feeds a tenant's board, which another one's wiring names."""
    at = Fed("pdu-a", "1")
    one = feeds({0: kept(0, "jackie", at), 1: None, 2: kept(2, "bob", Fed("pdu-a", "9"))})
    assert one.of(board(0), claim(0, "jackie")) == at
    assert one.of(board(0), claim(0, "another")) is None
    assert (one.of(board(1), claim(1, "x")), one.of(board(5), claim(5, "x"))) == (None, None)
    assert list(one.holders(board(1), "pdu-a", "1")) == [0]
    assert list(one.holders(board(0), "pdu-a", "1")) == []
    assert list(one.holders(board(1), "pdu-b", "1")) == list(one.holders(board(1), "pdu-a", "2")) == []
    assert one.doubt(board(0), claim(0, "jackie")) is None
    assert one.doubt(board(2), claim(2, "bob")).old == Fed("pdu-a", "9")
    assert one.doubt(board(1), None) is None


@pytest.mark.parametrize(("power", "feeds_it"), [("on", True), (None, True), ("off", False)])
def test_an_outlet_that_feeds_anothers_board_is_not_to_be_had(feeds, power, feeds_it):
    """Lost: who claims a free board cuts a tenant's."""
    one = feeds({3: kept(3, "eve", Fed("pdu-a", "1"))}, power={3: power})
    assert (one.feeds_another(board(0)) is not None) is feeds_it
    assert one.feeds_another(board(4)) is None


def test_of_whom_any_outlet_may_be(feeds):
    """Lost: the board of a claim whose record is gone: its outlet is any that is on."""
    damaged = HeteroError("is damaged", "board4.json", "mend it")
    one = feeds({2: None, 3: kept(3, "eve", anew=True), 4: damaged, 5: kept(5, "bob")}, lost=[2, 6])
    assert {number for number in range(8) if one.is_unknown(board(number))} == {2, 3, 4, 6}
    assert one.unknown(board(2)) == {3: "eve", 4: None, 6: None}
    assert one.unknown(board(0)) == {2: None, 3: "eve", 4: None, 6: None}
    assert one.doubt(board(0), None).unknown == one.unknown(board(0))
    assert [one.kept(number) and one.kept(number).claim.instance for number in (2, 4, 5)] == [None, None, "bob"]


HERE = OURS.format(outlet="pdu-a outlet 1")


@pytest.mark.parametrize(
    ("phases", "ours"),
    [
        ([], False),
        ([("power", HERE)], False),
        ([(SWITCH, HERE)], True),
        ([(SWITCH, HERE), *[("wait", "x")] * 49], True),
        ([(SWITCH, HERE), *[("wait", "x")] * 50], False),
        ([(SWITCH, HERE), (SWITCH, "pdu-a outlet 1 was switched off again")], False),
        ([(SWITCH, "pdu-a outlet 1 was switched off again"), (SWITCH, HERE), ("power", "x")], True),
        ([(SWITCH, OURS.format(outlet="pdu-a outlet 11"))], False),
        ([(SWITCH, OURS.format(outlet="pdu-b outlet 1"))], False),
        ([(SWITCH, "pdu-a outlet 1 is to be switched on")], False),
    ],
)
def test_an_outlet_that_a_check_left_on_is_known(phases, ours):
    """Lost: a board that a killed check left on stays on; or the power of what somebody else has switched on."""
    events = [SimpleNamespace(phase=phase, text=text, time=time.time()) for phase, text in phases]
    check = Cabling.__new__(Cabling)
    store = SimpleNamespace(newest_events=lambda number, most: events[-most:])
    check.proxy = SimpleNamespace(store=store, config=ProxyConfig(pdus={"pdu-a": {"path": "/pdu"}}))
    work = SimpleNamespace(board=board(0), pdu="pdu-a", outlet_name="pdu-a outlet 1")
    assert check._ours(work) is ours
