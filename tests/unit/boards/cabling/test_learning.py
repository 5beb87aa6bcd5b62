# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab that moves in learns its wiring: boards are played and hang on outlets that nobody named, PDUs are files."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import learning, outlet_tests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.boards.cabling.conftest import RACK

TRUTH = {board: (pdu, outlet) for pdu, fed in RACK.items() for outlet, boards in fed.items() for board in boards}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(outlet_tests, "SETTLE", 0.1)
    monkeypatch.setattr(outlet_tests, "PDU", 5.0)
    monkeypatch.setattr(learning, "LINGER", 0.1)


def learn(lab, *words, **options):
    with lab.proxy() as proxy:
        return learning.learn(proxy, list(words), outlet_tests.Options(**dict({"timeout": 3}, **options)))


def verdicts(result):
    return [(one["pdu"], one["outlet"], one["verdict"], one["found"]) for one in result["outlets"]]


def one(result):
    (found,) = result["outlets"]
    return found


def test_ten_boards_on_shuffled_outlets(lab):
    """Lost: days behind the racks of a lab that moves in."""
    result = learn(lab, "pdu-a:1-6", "pdu-b:1-6")
    assert {board: (wire["pdu"], wire["outlet"]) for board, wire in result["wiring"].items()} == TRUTH
    assert result["wiring"][4] == {"pdu": "pdu-a", "outlet": "5", "driver": "fake", "disk": "none"}
    assert (result["changed"], result["failed"], result["lost"]) == (True, False, [])
    assert [*result["seconds"]] == ["cabling"]
    nothing = [(one["pdu"], one["outlet"]) for one in result["outlets"] if one["verdict"] == "nothing"]
    assert nothing == [("pdu-a", "4"), ("pdu-b", "3")]
    assert lab.on == []
    assert result["tftp_proxy_boards"] == {str(board): wire for board, wire in result["wiring"].items()}
    said = [line for line in result["lines"] if isinstance(line, str)]
    assert said[:3] == [
        "12 of 12 outlets tested: 10 boards found",
        "feed nothing that boots: pdu-a outlet 4, pdu-b outlet 3",
        "Put these into tftp_proxy_boards, then run ansible-playbook hetero.compute.proxy:",
    ]
    assert said[3].startswith('  0: {"pdu": "pdu-a", "outlet": "2"')
    texts = [line["text"] for line in result["lines"] if not isinstance(line, str)]
    assert texts[0] == "who asks, or answers, within 3 s has power already"
    with lab.proxy() as proxy:
        told = [event.text for event in proxy.store.events(limit=5000) if event.phase == "cabling"]
    assert told[0] == texts[0], "else who follows it sees nothing while it waits"
    assert texts[1] == "pdu-a outlet 1: on, read back; who asks to boot?"
    assert texts[2].startswith("pdu-a outlet 1 feeds board7 (00:1a:ca:00:57:97): boot request after ")
    assert lab.switched()[:2] == [
        "pdu-a outlet 1 is to be switched on for the cabling check",
        "pdu-a outlet 1 was switched off again",
    ]


def test_check_mode(lab):
    """Lost: a dry run that switches."""
    lab.set("pdu-a", "4", "on")
    before = lab.on
    result = learn(lab, "pdu-a:3-4", check=True)
    assert verdicts(result) == [("pdu-a", "3", "not tested yet", []), ("pdu-a", "4", "on", [])]
    assert result["outlets"][0]["text"] == "pdu-a outlet 3 would be switched on until a board asks to boot, then off"
    assert (result["changed"], result["wiring"], lab.on, lab.switched()) == (True, {}, before, [])


def have_power(lab, seconds):
    """Board 7 has power by outlet 1 of pdu-a, for so many seconds."""
    lab.set("pdu-a", "1", "on")
    deadline = Deadline(20)
    while not (lab.folder / "run" / "fake-boots" / "board7").exists() and not deadline.passed:
        deadline.nap()
    lab.later(7, seconds)


def test_an_outlet_that_is_on_is_not_switched(lab):
    """Lost: whatever it feeds. And its board tells of no other outlet, although it asks while that is tested."""
    lab.rack["pdu-a"]["2"] = [0, 7]  # so that it boots anew just then
    have_power(lab, 60)
    result = learn(lab, "pdu-a:1-2")
    assert verdicts(result) == [("pdu-a", "1", "on", []), ("pdu-a", "2", "found", [0])]
    assert lab.on == [("pdu-a", "1")]
    assert 7 in result["lost"]
    assert not any("outlet 1" in text for text in lab.switched())
    said = [line["text"] for line in result["lines"] if not isinstance(line, str)]
    assert any(text.startswith("board7 has power already, by none of these outlets") for text in said), said


def test_a_board_in_the_middle_of_its_boot_has_power(lab):
    """Lost: the word that it has: it had asked for all of its files, and did not answer yet."""
    lab.play(7, running=61.5)
    have_power(lab, 60)
    result = learn(lab, "pdu-a:2")
    said = [line["text"] for line in result["lines"] if not isinstance(line, str)]
    assert any(text.startswith("board7 has power already, by none of these outlets") for text in said), said


def test_the_outlet_of_a_wired_board_is_left_to_its_check(lab):
    """Lost: a board's power, for who named one outlet too many; or the wiring, by a board that has another outlet."""
    lab.config["boards"]["9"].update(pdu="pdu-a", outlet="3")
    lab.config["boards"]["7"].update(pdu="pdu-b", outlet="8")
    lab.write()
    result = learn(lab, "pdu-a:1-3")
    assert verdicts(result) == [
        ("pdu-a", "1", "other", [7]),
        ("pdu-a", "2", "found", [0]),
        ("pdu-a", "3", "skipped", []),
    ]
    way = "ansible-playbook hetero.compute.cabling -e node=board"
    assert result["outlets"][2]["text"] == (
        f"not tested: pdu-a outlet 3 is that of board9 by the wiring: {way}9 tests it"
    )
    assert "whose wiring names pdu-b outlet 8: boot request" in result["msg"]
    assert result["msg"].endswith(f"{way}7 says what that one feeds")
    assert (list(result["wiring"]), result["failed"]) == ([0], True)
    assert result["tftp_proxy_boards"]["7"]["outlet"] == "8"
    assert not any("outlet 3" in text for text in lab.switched())


@pytest.mark.parametrize("taken", [False, True])
def test_the_last_outlet_of_somebodys_board_is_not_switched(lab, taken):
    """Lost: the peace of what a tenant has stopped, whose board the wiring has lost. One that feeds another since is
    no such outlet; but then nobody knows what feeds the board."""
    lab.claim(0)
    with lab.proxy() as proxy:
        proxy.store.feed(0, Fed("pdu-a", "2", str(lab.folder / "pdu-a.json"), taken="board1" if taken else None))
    result = learn(lab, "pdu-a:2")
    assert one(result)["verdict"] == "skipped"
    assert lab.switched() == []
    if taken:
        assert "pdu-a outlet 2 may feed vm0 on board0, and what feeds it is not known" in one(result)["text"]
    else:
        assert one(result)["text"] == "not tested: pdu-a outlet 2, by which vm0 on board0 had power last"
        assert one(learn(lab, "pdu-a:1"))["verdict"] == "found"


@pytest.mark.parametrize("shown", [presence.SILENT, presence.OWN_KEY])
def test_a_tenants_board_that_may_hang_anywhere(lab, monkeypatch, shown):
    """Lost: the same, where nothing tells by which outlet: it is another only while the board shows its key."""
    lab.claim(9)
    monkeypatch.setattr(presence, "shown", lambda work: shown)
    result = learn(lab, "pdu-a:1")
    if shown == presence.OWN_KEY:
        assert one(result)["verdict"] == "found"
        return
    assert (one(result)["verdict"], lab.switched()) == ("skipped", [])
    assert one(result)["text"] == (
        "not tested: pdu-a outlet 1 may feed vm9 on board9, and what feeds it is not known: tested while it runs and "
        "shows its key, for then an outlet that is off is another; or once tftp_proxy_boards names the outlet of "
        "board9, or nobody has or repairs that any more"
    )


def test_a_board_in_maintenance_may_hang_anywhere(lab):
    """Lost: whoever has his hands in it."""
    with lab.proxy() as proxy:
        proxy.store.move(3, "maintenance", "fan")
    result = learn(lab, "pdu-a:1")
    assert (one(result)["verdict"], lab.switched()) == ("skipped", [])
    assert "may feed board3" in one(result)["text"]


def test_a_tenants_board_that_comes_up_is_off_at_once(lab, monkeypatch):
    """Lost: a tenant's board, booted for half a minute: it showed its key, and yet it hangs there."""
    lab.claim(7)
    monkeypatch.setattr(presence, "shown", lambda work: presence.OWN_KEY)
    start = time.monotonic()
    result = learn(lab, "pdu-a:1", timeout=10)
    assert time.monotonic() - start < 60
    assert (one(result)["verdict"], result["wiring"], lab.on) == ("unsure", {}, [])
    assert "board7 (vm7) asked to boot meanwhile" in one(result)["text"]


def test_several_boards_and_a_board_of_two_outlets(lab):
    """Lost: a wiring that is half of the truth: who cuts one outlet of it cuts another's board, or none."""
    lab.rack["pdu-a"].update({"2": [0, 4], "3": [7]})
    lab.rack["pdu-b"].update({"1": [4]})
    result = learn(lab, "pdu-a:1-3", "pdu-b:1")
    assert [(verdict, found) for _pdu, _outlet, verdict, found in verdicts(result)] == [
        ("found", [7]),
        ("several", [0, 4]),
        ("twice", [7]),
        ("twice", [4]),
    ]
    assert (result["wiring"], result["failed"]) == ({}, True)
    assert "pdu-a outlet 3 feeds board7 (00:1a:ca:00:57:97), which asked by pdu-a outlet 1, too" in result["msg"]
    assert "  # 9: no outlet was found that feeds board9" in result["lines"]


def test_an_outlet_that_stays_on_ends_it(lab, monkeypatch):
    """Lost: a wiring in which the board of an outlet that stayed on is at each of the next ones."""
    switch = learning.Learning._switch

    def sticks(self, work, state):
        if state == "off":
            lab.pdu("pdu-a", refused=["1"])
        switch(self, work, state)

    monkeypatch.setattr(learning.Learning, "_switch", sticks)
    result = learn(lab, "pdu-a:1-2")
    assert [verdict for *_where, verdict, _found in verdicts(result)] == ["failed", "skipped"]
    assert "pdu-a outlet 1 may still be on, and what it feeds may ask again" in result["outlets"][1]["text"]
    assert (result["failed"], result["wiring"], lab.on) == (True, {}, [("pdu-a", "1")])


def killed(lab, *words):
    """A run is killed while its first outlet is on; which that is."""
    child = os.fork()
    if not child:
        try:
            learn(lab, *words, timeout=600)
        finally:
            os._exit(1)
    deadline = Deadline(60)
    while not lab.on and not deadline.passed:
        deadline.nap()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return lab.on


@pytest.mark.parametrize("others", [False, True])
def test_one_that_was_killed_is_taken_up(lab, monkeypatch, others):
    """Lost: the outlet that it left on, which the next run would take for somebody's; or somebody's, for that one."""
    monkeypatch.setattr(learning.Learning, "_listen", lambda self: None)
    assert killed(lab, "pdu-a:4", "pdu-a:1-2") == [("pdu-a", "4")]
    if others:
        with lab.proxy() as proxy:
            proxy.store.event(3, "switch", "pdu-a outlet 4 is to be switched on")
    lab.set("pdu-b", "8", "on")
    result = learn(lab, "pdu-a:1-2", "pdu-a:4", "pdu-b:8")
    texts = lab.switched()
    del texts[: 2 if others else 1]
    assert verdicts(result)[:2] == [("pdu-a", "1", "found", [7]), ("pdu-a", "2", "found", [0])]
    if others:
        assert result["outlets"][2]["verdict"] == "on"
        assert lab.on == [("pdu-a", "4"), ("pdu-b", "8")]
        return
    assert texts[0] == "pdu-a outlet 4 was switched off again", "before another one is on"
    assert result["outlets"][2]["verdict"] == "nothing"
    assert (result["outlets"][3]["verdict"], lab.on) == ("on", [("pdu-b", "8")])


def test_two_who_learn_take_turns(lab, monkeypatch):
    """Lost: the wiring, by boards that another run switched on."""
    monkeypatch.setattr(outlet_tests, "PDU", 0.2)
    with lock(str(lab.folder / "run"), outlet_tests.TURN, "cabling", "jo", Deadline(1)), pytest.raises(
        TimedOut, match="jo"
    ):
        learn(lab, "pdu-a:1")
    assert lab.switched() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pdu-c:1"], 'learn: there is no PDU "pdu-c" \\(known: pdu-a, pdu-b\\): name one of tftp_proxy_pdus'),
        (["pdu-b:2", "pdu-a:7-9"], "learn: pdu-a has no outlet 9 \\(it has 1, 2, .*8\\): name outlets that it has"),
        (["pdu-a:1-3", "pdu-a:02"], "learn: names outlet 02 of pdu-a twice: name each once"),
    ],
)
def test_what_cannot_be_learned_is_said_before_anything_is_switched(lab, words, said):
    """Lost: an hour of switching, for a slip in the last word."""
    with pytest.raises(BadInput, match=said):
        learn(lab, *words)
    assert lab.switched() == []
    with pytest.raises(BadInput, match="timeout: is 0: give at least 1 s"):
        learn(lab, "pdu-a:1", timeout=0)


def test_a_pdu_that_is_away_costs_only_its_own_outlets(lab):
    """Lost: the wiring of all other racks."""
    lab.pdu("pdu-b", hang=True)
    result = learn(lab, "pdu-b:1-2", "pdu-a:1")
    assert [verdict for *_where, verdict, _found in verdicts(result)] == ["failed", "failed", "found"]
    assert (result["failed"], list(result["wiring"])) == (True, [7])
