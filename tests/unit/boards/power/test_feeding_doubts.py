# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board in doubt: what its two outlets prove, what is said of it, and which verbs go on. Whole nodes are in
verbs/test_recabling.py.

Tests boards/power/last_outlet.py, boards/power/outlet_holder.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import doubt as doubt_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import last_outlet
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.doubt import Doubt
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.outlet_holder import named
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import ALIVE, OWN_KEY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

NEW, OLD, ELSEWHERE = Fed("pdu-a", "1"), Fed("pdu-b", "2"), Fed("gone", "7")
EVE = SimpleNamespace(claim=SimpleNamespace(instance="eve"), fed=NEW)
BOB = SimpleNamespace(claim=SimpleNamespace(instance="bob"), fed=NEW)
ONE = SimpleNamespace(claim=SimpleNamespace(instance="one"), fed=NEW)


def doubt(old=None, holders=None, unknown=None, new_power=None, old_power=None, claimed=True, boards=range(20)):
    """Of board0, which is jackie's, on a node with boards `boards` and PDUs a and b, which said that."""
    feeds = Feeds.__new__(Feeds)
    feeds.proxy = SimpleNamespace(boards=boards, config=ProxyConfig(pdus={"pdu-a": {}, "pdu-b": {}}))
    claim = SimpleNamespace(instance="jackie") if claimed else None
    one = Doubt(feeds, SimpleNamespace(id=0, name="board0"), claim, NEW, old, holders or {}, unknown or {})
    outlets = {
        "pdu-a": {"1": new_power} if new_power else {},
        "pdu-b": {"2": old_power} if old_power else {},
    }
    one.see({name: (found, None) for name, found in outlets.items()})
    return one


TAKEN = Fed("pdu-b", "2", None, "board5")
BELIED, BELIED_THERE = Fed("pdu-a", "1", belied=True), Fed("pdu-b", "2", belied=True)


@pytest.mark.parametrize(
    ("old", "holders", "unknown", "new_power", "old_power", "off", "proves"),
    [
        (OLD, {}, {}, "on", "off", False, True),
        (OLD, {}, {}, "on", "on", False, False),
        (OLD, {}, {}, "on", None, False, False),
        (OLD, {}, {}, "off", "off", True, False),
        (OLD, {}, {}, "off", "on", False, False),
        (OLD, {}, {}, "off", None, False, False),
        (OLD, {}, {}, None, "off", False, False),
        # its old outlet was proven to feed another board since
        (TAKEN, {}, {}, "on", "on", False, True),
        (TAKEN, {}, {}, "off", "on", True, False),
        # its board lived on while it was off: by its key nothing is known of the same one
        (BELIED, {}, {}, "on", "on", False, False),
        (BELIED, {}, {}, "off", None, True, False),
        (BELIED_THERE, {}, {}, "on", "on", False, True),
        (BELIED_THERE, {5: EVE}, {}, "on", "on", False, False),
        # its PDU is gone, so nobody can be asked
        (ELSEWHERE, {}, {}, "on", None, False, False),
        (ELSEWHERE, {}, {}, "off", None, True, False),
        (OLD, {5: EVE}, {}, "on", "off", False, False),
        (OLD, {}, {6: None}, "on", "off", False, False),
        # nothing is known of an old one
        (None, {5: EVE}, {}, "off", None, True, False),
        (None, {5: EVE}, {}, "on", None, False, False),
    ],
)
def test_what_two_outlets_prove(old, holders, unknown, new_power, old_power, off, proves):
    """Lost: the power of a board that another outlet feeds than its wiring says; or a start by the right one."""
    one = doubt(old, holders, unknown, new_power, old_power)
    assert (one.is_off, one.key_proves) == (off, proves)
    assert one.pdus == ({"pdu-a", "pdu-b"} if old in (OLD, TAKEN, BELIED_THERE) else {"pdu-a"})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (dict(old=OLD), "its wiring names pdu-a outlet 1, and jackie had its power by pdu-b outlet 2 last"),
        (
            dict(old=OLD, new_power="on", old_power="off"),
            "its wiring names pdu-a outlet 1 (on), and jackie had its power by pdu-b outlet 2 last (off)",
        ),
        (
            dict(old=TAKEN, old_power="on"),
            "its wiring names pdu-a outlet 1, and jackie had its power by pdu-b outlet 2 last (feeds board5 since)",
        ),
        (dict(old=BELIED), "its wiring names pdu-a outlet 1, and jackie lived on while that was off"),
        (
            dict(old=BELIED_THERE, old_power="on"),
            "its wiring names pdu-a outlet 1, and jackie had its power by pdu-b outlet 2 last (and lived on while that"
            " was off)",
        ),
        (
            dict(old=ELSEWHERE),
            "its wiring names pdu-a outlet 1, and jackie had its power by gone outlet 7 last (not in the configuration"
            " any more)",
        ),
        (
            dict(holders={5: EVE, 6: BOB}),
            "its wiring names pdu-a outlet 1, by which eve on board5 and bob on board6 had power last",
        ),
        (
            dict(unknown={3: "ann"}, new_power="off"),
            "its wiring names pdu-a outlet 1 (off), which may feed ann on board3: the record of what feeds it is"
            " lost, cannot be read or proved wrong",
        ),
        (
            dict(unknown={3: None, 4: "ann"}),
            "its wiring names pdu-a outlet 1, which may feed board3 and ann on board4: the record of what feeds them is"
            " lost, cannot be read or proved wrong",
        ),
    ],
)
def test_whose_outlet_it_may_be_is_said(given, text):
    """Lost: whose power would have been cut, and by which of two outlets."""
    assert str(doubt(**given)) == text


def test_not_more_boards_are_named_than_can_be_read():
    """Lost: the one line of an error, to a hundred boards whose records are lost; or one board of four, uncounted."""
    names = {number: f"vm{number}" for number in range(1, 4)}
    assert named(names) == "vm1 on board1 and vm2 on board2 and vm3 on board3"
    assert named({**names, 4: None, 5: None}).endswith(" and vm3 on board3 and 2 more")


ADOPT = "reconcile -e adopt="


@pytest.mark.parametrize(
    ("given", "correct", "adopted", "more"),
    [
        (dict(old=OLD), True, "jackie", "where it was plugged elsewhere"),
        (dict(old=OLD, holders={5: EVE}), True, "jackie", "where it was plugged elsewhere"),
        (dict(old=OLD, unknown={5: "eve"}), True, "jackie", "where it was plugged elsewhere"),
        (dict(holders={5: EVE, 6: BOB}), True, "eve,bob", "where eve and bob had the plug moved"),
        (dict(holders={5: EVE}, unknown={6: "bob"}), True, "eve", "where eve had the plug moved"),
        (dict(unknown={5: "eve", 6: None, 7: "bob"}, claimed=False), False, "eve,bob", "takes its word"),
        (dict(unknown={5: "eve"}), False, "jackie", "takes its word"),
        (dict(old=BELIED), False, "jackie", "nothing is switched: look at its plug, and have it where the wiring says"),
        (dict(old=BELIED_THERE), True, "jackie", "where it was plugged elsewhere"),
        (dict(unknown={6: None}, claimed=False), True, None, "remove the record of board6"),
    ],
)
def test_the_way_out_names_who_is_to_be_adopted(given, correct, adopted, more):
    """Lost: what an operator types; a wrong name has the board of somebody else switched."""
    remedy = doubt(**given).remedy
    assert remedy.startswith(doubt_module.CORRECT) is correct
    assert (f"{ADOPT}{adopted} " in remedy) if adopted else (ADOPT not in remedy), remedy
    assert more in remedy
    assert "is not in the boards file" not in remedy


@pytest.mark.parametrize("given", [dict(holders={5: EVE}), dict(unknown={5: "eve"})])
def test_a_board_that_is_gone_from_the_boards_file_is_let_go_of_by_name(given):
    """Lost: how to be rid of a claim on a board that was taken out of the rack."""
    remedy = doubt(boards=range(1), **given).remedy
    assert "; board5 is not in the boards file" in remedy
    assert "reconcile -e forget=eve" in remedy
    assert "reconcile" in (of_nobody := doubt(boards=range(1), unknown={5: None, 6: "x"}).remedy)
    assert ("board6 is not in" in of_nobody, "board5 is not in" in of_nobody) == (True, False)


@pytest.mark.parametrize(
    ("old", "text"),
    [
        (OLD, "rewired: was pdu-b outlet 2, is pdu-a outlet 1"),
        (ELSEWHERE, "rewired: was gone outlet 7, is pdu-a outlet 1"),
        (None, "rewired: was not known, is pdu-a outlet 1"),
    ],
)
def test_a_change_of_the_wiring_is_told_with_both_outlets(old, text):
    """Lost: where its plug was, for whoever looks for it in the events."""
    assert doubt(old).rewired == text


def test_a_pdu_that_was_given_another_name_is_called_by_it():
    """Lost: who looks at the PDU finds none of that name."""
    feeds = Feeds.__new__(Feeds)
    pdus = {"pdu-a": {}, "new": {"host": "10.0.100.2", "port": 22}}
    feeds.proxy = SimpleNamespace(boards={}, config=ProxyConfig(pdus=pdus))
    one = Doubt(feeds, None, SimpleNamespace(instance="x"), NEW, Fed("pdu-b", "2", "10.0.100.2:22"), {}, {})
    assert one.rewired == "rewired: was new outlet 2, is pdu-a outlet 1"
    assert one.pdus == {"pdu-a", "new"}


# ---- what the verbs do with it


class Work:
    """A board's work with what is said of it."""

    def __init__(self, number=0, **more):
        self.board = SimpleNamespace(id=number, name=f"board{number}")
        self.claim = self.doubt = None
        self.over = self.wiring_seen = self.off_by_all = False
        self.state, self.said, self.failed = "running", [], []
        self.change = SimpleNamespace(check=False)
        vars(self).update(more)

    def say(self, phase, text):
        self.said.append((phase, text))

    def fail(self, blame, error):
        self.failed.append((blame, error))
        self.over = True


@pytest.fixture
def settled(monkeypatch):
    """`feeding.settle` of a board in doubt; gives its work, and what was remembered of it."""

    def make(one, lives=False, shown=OWN_KEY, **more):
        remembered = []
        feeds = SimpleNamespace(
            proxy="the proxy",
            doubt=lambda board, claim: one,
            remember=lambda work, proven: remembered.append(proven),
        )

        def ask(proxy, names, deadline, tell):
            assert (proxy, 60 < deadline.seconds < 600) == ("the proxy", True)
            for name in ("pdu-a", "pdu-c"):
                tell(name, f"waits for {name}")
            return {name: ({"1": one.wanted[0], "2": one.wanted[1]}, None) for name in names}

        monkeypatch.setattr(last_outlet, "statuses", ask)
        monkeypatch.setattr(last_outlet, "Silence", lambda work: SimpleNamespace(life=lambda: ["it lives"] * lives))
        monkeypatch.setattr(last_outlet.presence, "shown", lambda work: shown)
        work = Work(**more)
        last_outlet.settle([work], feeds)
        return work, remembered

    return make


def wanted(new_power, old_power, **given):
    one = doubt(old=OLD, **given)
    one.wanted = new_power, old_power
    return one


@pytest.mark.parametrize(
    ("powers", "lives", "shown", "state", "done"),
    [
        (("on", "off"), False, OWN_KEY, "running", "rewired"),
        (("on", "off"), False, OWN_KEY, "booting", "rewired"),
        (("on", "off"), False, OWN_KEY, "power off", "doubted"),
        (("on", "off"), False, ALIVE, "running", "doubted"),
        (("on", "on"), False, OWN_KEY, "running", "doubted"),
        (("off", "off"), False, OWN_KEY, "running", "to be started"),
        (("off", "off"), True, OWN_KEY, "running", "doubted"),
    ],
)
def test_a_board_is_looked_at_before_its_wiring_counts(settled, powers, lives, shown, state, done):
    """Lost: the power of somebody else's board, by a wiring that was changed by mistake; or a rewired one stays off."""
    work, remembered = settled(wanted(*powers), lives, shown, state=state)
    assert ("wait", "waits for pdu-a") in work.said
    assert ("wait", "waits for pdu-c") not in work.said, "a PDU that is not asked for this board"
    assert work.wiring_seen is True
    assert work.off_by_all is (done == "to be started")
    if done == "rewired":
        assert ("wiring", "rewired: was pdu-b outlet 2, is pdu-a outlet 1") in work.said
        assert (remembered, work.doubt) == ([True], None)
    else:
        assert isinstance(work.doubt, Refused)
        assert (work.doubt.thing, bool(work.doubt.what), bool(work.doubt.remedy)) == ("board0", True, True)
        assert (remembered, len(work.said)) == ([], 1)


def test_a_dry_run_writes_no_wait_and_nobody_is_asked_twice(settled):
    """Lost: an event of a dry run, or half a minute for each step of a verb."""
    work, _remembered = settled(wanted("on", "on"), change=SimpleNamespace(check=True))
    assert work.said == []
    for more in (dict(over=True), dict(wiring_seen=True)):
        work, remembered = settled(wanted("on", "off"), **more)
        assert (work.said, remembered, work.doubt) == ([], [], None)


def test_a_board_whose_wiring_is_known_to_be_right_asks_no_pdu(monkeypatch):
    """Lost: the one session of each PDU, for every verb."""
    monkeypatch.setattr(last_outlet, "statuses", lambda *given: pytest.fail("asked"))
    work = Work()
    last_outlet.settle([work], SimpleNamespace(proxy=None, doubt=lambda *given: None))
    assert (work.wiring_seen, work.doubt, work.said) == (True, None, [])


def test_not_all_boards_of_a_large_node_are_looked_at_at_once(settled, monkeypatch):
    """Lost: the node's threads and sockets, to a wiring in which every board is in doubt; or minutes, one by one."""
    most, real = [], last_outlet.ThreadPoolExecutor
    monkeypatch.setattr(
        last_outlet, "ThreadPoolExecutor", lambda max_workers: most.append(max_workers) or real(max_workers)
    )
    settled(wanted("on", "on"))
    assert 16 <= most[0] <= 128


@pytest.mark.parametrize(
    ("doubted", "off_by_all", "over", "ends"),
    [(True, False, False, True), (True, True, False, False), (True, False, True, False), (False, False, False, False)],
)
def test_only_boards_in_doubt_are_refused(doubted, off_by_all, over, ends):
    """Lost: a start of a board that is off by both outlets; or a stop that cuts another's power."""
    error = Refused("its wiring names another", "board0", "correct it") if doubted else None
    work = Work(doubt=error, off_by_all=off_by_all, over=over)
    last_outlet.refuse_doubted([work])
    assert work.failed == ([(None, error)] if ends else [])
    assert work.said == ([("error", error.what)] if ends else [])
    if doubted and not off_by_all:
        with pytest.raises(Refused):
            last_outlet.must_be_settled(work)
    else:
        last_outlet.must_be_settled(work)
