# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One board within a call: what is recorded of it, what is said, and its part of the result."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused

KEY = "ssh-ed25519 AAAA"


def texts(one, phase):
    return [event.text for event in one.proxy.store.events(boards=[one.board.id]) if event.phase == phase]


def test_a_board_of_which_nothing_was_read_is_nobodys(work):
    """Lost: the result of a board whose lock another process keeps."""
    one = work(read=False)
    assert one.result() == dict(
        board=1,
        name="board1",
        instance=None,
        ip="10.0.2.2",
        state=None,
        known_hosts=None,
        phases={},
        power_proof=None,
        changed=False,
        failed=False,
        blame=None,
        error=None,
        evidence={},
        until=None,
    )
    assert (one.claim, one.ran, one.stays_on, one.image_name) == (None, False, False, "no image")
    assert (one.is_read, one.pdu, one.outlet) == (False, "", "")
    with pytest.raises(RuntimeError, match="the record of board1 was not read"):
        _state = one.state
    with pytest.raises(RuntimeError, match="board1 has no boot driver yet"):
        _driver = one.driver
    assert (one.over, one.off_by_all, one.wiring_seen, one.only_from_off, one.as_rebuilt) == (False,) * 5
    assert (one.doubt, one.unproven, one.began, one.key_proof, one.lines) == (None, None, None, None, [])
    assert one.up == ("running", "ssh answers")


def test_what_is_recorded_of_a_board_is_read(work, monkeypatch):
    """Lost: whose board it is and which outlet is its, or that somebody else's root lies there."""
    asked = []
    monkeypatch.setattr(board_work, "refuse_anothers", lambda *given: asked.append(given))
    one = work(wanted="jackie")
    assert (one.instance, one.state, one.began, one.pdu, one.outlet) == (
        "jackie",
        "power off",
        "power off",
        "pdu-a",
        "5",
    )
    assert (one.outlet_name, one.image_name) == ("pdu-a outlet 5", "image debian")
    assert asked == [(one.proxy, one.board, one.claim)]
    one.move("booting")
    one.read()
    assert (one.state, one.began) == ("booting", "power off")
    with pytest.raises(Refused, match="is not eve's any more"):
        work(wanted="eve")
    with pytest.raises(Refused):
        work(wanted="jackie", created=(1.0,))


@pytest.mark.parametrize(
    ("rebuilt", "ran", "source", "at_work", "stays_on"),
    [
        (False, True, "disk", True, True),
        (False, True, "nfs", True, False),
        (False, True, None, True, False),
        (False, False, "disk", False, False),
        (True, True, "disk", False, False),
    ],
)
def test_a_board_that_ran_may_be_at_work(work, rebuilt, ran, source, at_work, stays_on):
    """Lost: what a tenant's disk has not written yet; or a dry run of a rebuild that says that the board stays on."""
    one = work()
    one.proxy.store.put("jackie", boot_source=source, host_key=KEY)
    one.read()
    one.as_rebuilt = rebuilt
    if ran:
        one.say("running", "ssh answers")
    assert (one.ran, one.stays_on) == (at_work, stays_on)
    system = one.system
    assert (system.root, system.host_key, system.image) == (source or "nfs", KEY, None)
    assert work(2).system.host_key is None


@pytest.mark.parametrize("check", [False, True])
def test_what_is_said_is_an_event_and_a_line(work, check):
    """Lost: what whoever waits sees; or the events of a dry run, in which nothing was done."""
    one = work(check=check)
    one.say("power", "on", 1.23456)
    one.say("wait", "for a lock")
    one.line("running", "already")
    known = dict(instance="jackie", node="board1")
    assert one.lines == [
        dict(known, phase="power", text="on", seconds=1.23),
        dict(known, phase="wait", text="for a lock", seconds=None),
        dict(known, phase="running", text="already", seconds=None),
    ]
    assert texts(one, "power") == ([] if check else ["on"])
    seconds = [event.seconds for event in one.proxy.store.events(boards=[1]) if event.phase == "power"]
    assert seconds == ([] if check else [1.23])
    assert texts(one, "running") == []


@pytest.mark.parametrize("check", [False, True])
def test_a_change_is_done_where_something_differs_and_nobody_only_asks(work, check):
    """Lost: `changed` of the result, or a dry run that writes."""
    one = work(check=check)
    assert one.note("its entry", {"a": 1}, {"a": 1}) is False
    assert one.changed is False
    assert one.note("its entry", {"a": 1}, {"a": 2}) is not check
    assert one.changed is True
    assert one.change.changed is True


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        (["running"], ["power off → booting", "booting → running"]),
        (["booting", "shutting down", "running"], ["shutting down → power off", "booting → running"]),
        (["booting", "shutting down", "booting"], ["shutting down → power off", "power off → booting"]),
        (["booting", "booting"], ["power off → booting"]),
    ],
)
def test_a_board_comes_into_a_state_by_the_way_that_leads_there(work, ways, said):
    """Lost: a verb that ends in a traceback, for a board that was stopped in the middle."""
    one = work()
    for state in ways:
        one.move(state)
        assert one.state == state
    assert [text for text in texts(one, "state") if text in said][-2:] == said


def test_the_note_of_a_state_stays_and_is_of_its_end(work):
    """Lost: why a board is in its state."""
    one = work()
    one.move("booting", "why")
    one.move("booting")
    assert one.record.note == "why"
    one.move("booting", "another")
    assert one.record.note == "another"
    other = work(2)
    other.move("running", "fine")
    assert (other.state, other.record.note) == ("running", "fine")
    assert [text for text in texts(other, "state") if "fine" in text] == texts(other, "state")[-1:]
    dry = work(3, check=True)
    dry.move("running")
    dry.power_seen("on")
    assert (dry.state, dry.proxy.store.record(3).power) == ("power off", None)
    one.power_seen("on")
    assert (one.record.power, one.proxy.store.record(1).power) == ("on", "on")


def test_a_board_that_is_kept_out_of_use_says_why(work):
    """Lost: the note that an operator reads, and the end of the console."""
    one = work()
    one.evidence["console_tail"] = ["Oops", "panic"]
    one.quarantine("it stalled", "; see its cable", tries=2)
    assert (one.state, one.record.note) == ("error", "it stalled")
    assert (one.failed, one.over, one.blame) == (True, True, "board")
    assert one.error == "board1: it stalled; see its cable"
    assert one.evidence == {"console_tail": ["Oops", "panic"], "tries": 2}
    assert one.lines[-1]["text"] == "kept out of use: it stalled\nOops\npanic"
    other = work(2)
    other.quarantine("it stalled")
    assert (other.error, other.lines[-1]["text"]) == ("board2: it stalled", "kept out of use: it stalled")
    assert other.lines[-1]["phase"] == "error"


def test_what_counts_for_a_board_and_against_it(work):
    """Lost: requests that keep away from the board that fails; or a board's name, for what a tenant did to its root."""
    one, store = work(), work().proxy.store
    one.came_up()
    assert (store.health([1])[1]["passed"], store.scores()) == (1, {})
    one.quarantine("its root does not come up", at_fault=False)
    assert store.scores() == {}
    one.quarantine("its outlet does not obey")
    assert store.scores() == {1: 50}
    assert store.health([1])[1]["failures"][0]["text"] == "its outlet does not obey"
    dry = work(3, check=True)
    dry.came_up()
    dry.quarantine("would stall")
    assert store.health([3]) == {}


def test_a_board_that_may_be_anothers_ends_the_work_on_it(work):
    one = work()
    one.unproven = Refused("only the database says so", "board1", "adopt it")
    one.refuse_unproven()
    assert (one.failed, one.over, one.blame, one.error) == (True, True, "instance", str(one.unproven))
    assert one.lines[-1]["phase"] == "error"
    assert one.lines[-1]["text"] == "the board is left as it is: only the database says so"
    other = work(2)
    board_work.refuse(other, "is in maintenance", "end it")
    assert (other.blame, other.error) == (None, "board2: is in maintenance: end it")


@pytest.mark.parametrize("key", [None, KEY])
def test_the_result_of_a_board(work, key):
    """Lost: how its users reach it."""
    one = work()
    one.driver = SimpleNamespace(address=lambda board: "10.9.9.9", known_hosts=lambda board, key: f"{board.name} {key}")
    if key:
        one.proxy.store.put("jackie", host_key=key)
        one.read()
    one.phases, one.power_proof, one.changed = {"power": 1.23456}, {"pdu": "x"}, True
    told = one.result()
    assert told["known_hosts"] == (f"board1 {KEY}" if key else None)
    assert (told["ip"], told["instance"], told["state"]) == ("10.9.9.9", "jackie", "power off")
    assert (told["phases"], told["power_proof"], told["changed"]) == ({"power": 1.23}, {"pdu": "x"}, True)
    one.proxy.store.release(1, one.claim)
    one.read()
    assert one.result()["known_hosts"] is None


def test_whose_fault_it_is_in_the_order_of_the_worst():
    """Lost: that the proxy is at fault, which hits all of its boards."""
    assert board_work.BLAME == ("proxy", "network", "image", "board", "instance")
    named = [SimpleNamespace(lines=[], failed=False, changed=False, blame=None, result=dict) for _one in range(2)]
    named[1].blame = "instance"
    told = board_work.summary(named, SimpleNamespace(result={}))
    assert (told["blame"], told["failed"], "msg" in told) == ("instance", False, False)
