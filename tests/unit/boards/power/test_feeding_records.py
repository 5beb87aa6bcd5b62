# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written down of outlets, when, and by whose word. Whole nodes are in verbs/test_recabling.py."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import last_outlet
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import ALIVE, OWN_KEY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    Claim,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

HERE, THERE = Fed("pdu-a", "1", "10.0.100.1"), Fed("pdu-a", "2", "10.0.100.1")


def claim(number, name):
    return Claim(number, name, name, "jo", {}, "debian", "ssh-ed25519 AAAA x", 1.0)


def board(number):
    return SimpleNamespace(id=number, name=f"board{number}")


class Records:
    """A store that holds {board: Fed, or None} of vm0, vm1, … and writes what it is told to; `lost` are gone ones."""

    def __init__(self, fed, lost=()):
        self.kept_of = {number: Kept(claim(number, f"vm{number}"), "running", fed=one) for number, one in fed.items()}
        self.lost_of, self.written, self.copies = list(lost), [], False
        self.told = []
        self.transaction = nullcontext
        self.commits = 0

    def kept(self, number):
        found = self.kept_of.get(number)
        if isinstance(found, Exception):
            raise found
        return found

    def kept_boards(self):
        return sorted(self.kept_of)

    def lost(self):
        return [claim(number, f"vm{number}") for number in self.lost_of]

    def claims(self):
        return self.lost()

    def begun(self):
        return {}

    def commit(self):
        self.commits += 1

    def is_copy(self, error):
        return self.copies

    def record(self, number):
        return SimpleNamespace(claim=None)

    @staticmethod
    def unseen_cut(number):
        """Each switching was looked after."""

    def event(self, number, phase, text):
        self.told.append(SimpleNamespace(board=number, phase=phase, text=text))

    def first_since_claim(self, of, phase, text, newest):
        assert newest
        told = [one for one in self.told if one.board == of.board and one.text.endswith(text.lstrip("%"))]
        return told[-1] if told else None

    def feed(self, number, fed):
        self.written.append((number, fed))
        if number in self.lost_of:
            self.lost_of.remove(number)
        self.kept_of[number] = Kept(claim(number, f"vm{number}"), "running", fed=fed)


def node(records, tmp_path="/nowhere"):
    """Feeds of a node whose boards are at outlets 1, 2, … of pdu-a."""
    pdus = {"pdu-a": {"host": "10.0.100.1"}, "pdu-b": {"host": "10.0.100.2"}}
    proxy = SimpleNamespace(
        store=records,
        config=ProxyConfig(pdus=pdus, state_folder=str(tmp_path)),
        folder=lambda *parts: "/".join((str(tmp_path), *parts)),
        outlet=lambda one: ("pdu-a", str(one.id + 1)),
        boards={number: board(number) for number in range(8)},
    )
    return Feeds(proxy)


def work(number=0, claimed=True, check=False, **more):
    return SimpleNamespace(
        board=board(number),
        claim=claim(number, f"vm{number}") if claimed else None,
        instance=f"vm{number}" if claimed else None,
        pdu="pdu-a",
        outlet=str(number + 1),
        change=SimpleNamespace(check=check),
        **{"doubt": None, "state": "running", **more},
    )


TAKEN = Fed("pdu-a", "1", "10.0.100.1", taken="board0")


@pytest.mark.parametrize(
    ("fed", "given", "proven", "written"),
    [
        ({0: None}, {}, False, [(0, HERE)]),
        ({0: THERE}, {}, False, [(0, HERE)]),
        # known already
        ({0: HERE}, {}, False, []),
        ({0: HERE}, {}, True, []),
        # what its PDU is reached at is learnt, too
        ({0: Fed("pdu-a", "1")}, {}, False, [(0, HERE)]),
        ({0: None}, {"check": True}, True, []),
        ({0: None, 3: HERE}, {"check": True}, True, []),
        ({0: None}, {"doubt": "in doubt"}, False, []),
        ({0: None}, {"doubt": "in doubt"}, True, [(0, HERE)]),
        # another board's last outlet
        ({0: None, 3: HERE}, {}, False, []),
        ({0: HERE, 3: HERE}, {}, False, []),
        ({0: HERE, 3: HERE}, {}, True, [(3, TAKEN), (0, HERE)]),
        ({0: None, 3: HERE}, {}, True, [(3, TAKEN), (0, HERE)]),
        ({0: None, 3: THERE}, {}, True, [(0, HERE)]),
        # nobody's board
        ({3: HERE}, {"claimed": False}, True, [(3, TAKEN)]),
        ({3: HERE}, {"claimed": False}, False, []),
        ({3: THERE}, {"claimed": False}, True, []),
    ],
)
def test_which_outlet_feeds_a_board_is_written_down(fed, given, proven, written):
    """Lost: which outlet feeds a tenant's board, so that a mistake in the wiring cuts it; or another's claim to it."""
    records = Records(fed)
    feeds, one = node(records), work(**given)
    feeds.remember(one, proven)
    assert records.written == written
    if written:
        assert one.doubt is None
        assert one.claim is None or feeds.of(one.board, one.claim) == HERE
        assert not feeds.holders(one.board, "pdu-a", "1"), "what was taken is known at once"
    else:
        assert one.doubt == given.get("doubt")


def test_what_changed_meanwhile_is_not_taken():
    """Lost: the outlet of an instance that its own verb moved elsewhere since this call began."""
    records = Records({0: None, 3: HERE})
    feeds = node(records)
    records.kept_of[3] = Kept(claim(3, "vm3"), "running", fed=THERE)
    feeds.remember(work(), True)
    assert records.written == [(0, HERE)]
    assert feeds.kept(3).fed == THERE


def test_a_board_whose_outlet_was_noted_is_no_riddle_any_more():
    """Lost: all other boards of the node, which may not be switched off while any outlet may be its."""
    feeds = node(Records({}, lost=[0, 5]))
    assert (feeds.is_unknown(board(0)), feeds.unknown(board(1))) == (True, {0: "vm0", 5: "vm5"})
    feeds.remember(work(), True)
    assert (feeds.is_unknown(board(0)), feeds.unknown(board(1))) == (False, {5: "vm5"})


def test_an_outlet_that_another_board_was_proven_to_have_is_no_proof():
    """Lost: the other board's power, by the older record."""
    feeds = node(Records({0: TAKEN, 1: HERE}))
    assert list(feeds.holders(board(2), "pdu-a", "1")) == [1]
    assert feeds.doubt(board(0), claim(0, "vm0")).old == TAKEN


def test_a_board_that_lived_on_is_a_riddle(monkeypatch):
    """Lost: its power, by another board's outlet; or its record to a full disk, and with it the whole call."""
    records = Records({0: HERE, 1: None})
    feeds, one = node(records), work()
    said = feeds.belie(one)
    assert "it is not switched for vm0 again before plug or wiring is right" in said
    assert records.written == [(0, Fed("pdu-a", "1", "10.0.100.1", belied=True))]
    assert records.commits == 1, "at once: its process may be killed before the end of its turn"
    assert (feeds.is_unknown(board(0)), list(feeds.unknown(board(1)))) == (True, [0])
    assert feeds.doubt(board(0), one.claim).old == records.written[0][1]
    feeds.remember(one, False)
    assert feeds.is_unknown(board(0)), "a key proves nothing of that outlet"
    feeds.remember(one, True)
    assert (feeds.is_unknown(board(0)), feeds.doubt(board(0), one.claim)) == (False, None)
    assert feeds.belie(work(claimed=False)) == ""

    def full(*_given):
        raise HeteroError("no space left", "claims", "make space")

    monkeypatch.setattr(records, "feed", full)
    assert feeds.belie(one) == "; that could not be written down: claims: no space left: make space"


def test_an_outlet_that_cut_another_board_is_that_boards_at_once():
    """Lost: the other board's power, by what the same call does next."""
    records = Records({0: HERE, 4: None})
    feeds, one = node(records), work()
    said = feeds.took(one, [SimpleNamespace(board=4, claim=claim(4, "vm4"))])
    assert "where vm4 went off by itself" in said
    taken = Fed("pdu-a", "1", "10.0.100.1", taken="board4")
    assert records.written == [(4, HERE), (0, taken)]
    assert list(feeds.holders(None, "pdu-a", "1")) == [4]
    assert (feeds.of(one.board, one.claim), feeds.doubt(one.board, one.claim).old) == (taken, taken)


def test_an_unknown_board_leaves_those_alone_that_prove_their_outlet():
    """Lost: every running instance of the node can be stopped no more, for one lost record."""
    feeds = node(Records({0: HERE, 1: None}, lost=[5]))
    assert feeds.doubt(board(0), claim(0, "vm0")) is None
    assert feeds.doubt(board(1), claim(1, "vm1")).unknown == {5: "vm5"}
    assert feeds.doubt(board(1), claim(1, "vm1")).old is None


@pytest.mark.parametrize(
    ("fed", "names"),
    [
        (Fed("pdu-a", "1", "10.0.100.1"), ["pdu-a"]),
        (Fed("old", "1", "10.0.100.1"), ["pdu-a"]),
        (Fed("pdu-b", "1", "10.0.100.1"), ["pdu-a"]),
        (Fed("pdu-b", "1", "10.0.100.9"), ["pdu-b"]),
        (Fed("pdu-b", "1"), ["pdu-b"]),
        (Fed("old", "1", "10.0.100.9"), []),
        (Fed("old", "1"), []),
    ],
)
def test_a_pdu_is_the_one_of_its_address_whatever_it_is_called(fed, names):
    """Lost: the outlets of a PDU that was given another name; or names that were swapped cut the other PDU's boards."""
    feeds = node(Records({}))
    assert feeds.names(fed) == names
    assert [name for name in ("pdu-a", "pdu-b", "old") if feeds.is_at(fed, name, "1")] == names
    assert not feeds.is_at(fed, names[0] if names else "old", "2")


@pytest.mark.parametrize(
    ("copy", "claimed", "left", "lost"),
    [
        (True, False, None, False),
        (False, False, None, True),
        (True, True, None, True),
        (True, False, "roots/board4", True),
        (True, False, "disks/board4.tar", True),
    ],
)
def test_a_copy_of_anothers_record_is_no_loss_where_nobody_was(tmp_path, monkeypatch, copy, claimed, left, lost):
    """Lost: all boards of a node for a file that somebody copied; or the outlet of one whose record it overwrote."""
    records = Records({})
    records.kept_of[4] = HeteroError("that is a record of board1, not of board4", "board4.json", "look")
    records.copies = copy
    records.record = lambda number: SimpleNamespace(claim=claim(4, "vm4") if claimed else None)
    folders = []

    def part(name):
        def make(proxy, one):
            folders.append((name, one))
            return SimpleNamespace(exists=lambda: left is not None and left.startswith(name))

        return make

    monkeypatch.setattr(last_outlet, "root_of_board", part("roots"))
    monkeypatch.setattr(last_outlet, "disk_of_board", part("disks"))
    feeds = node(records, tmp_path)
    assert feeds.is_unknown(board(4)) is lost
    assert feeds.kept(4) is None
    if copy and not claimed:
        assert folders == [("roots", 4), ("disks", 4)]


# ---- reconcile


class Look:
    """What reconcile found of a board, and what it says of it."""

    def __init__(self, power="on", ssh=OWN_KEY, found=(), lives=False, left=False, **of_work):
        self.work = work(**of_work)
        self.power, self.ssh, self.found, self.lives_without_power, self.left = power, ssh, list(found), lives, left
        self.mended, self.notes = [], []

    def mend(self, what, done):
        self.mended.append((what, done))

    def note(self, text):
        self.notes.append(text)


def compared(monkeypatch, look, fed, lost=(), names=(), outlets=None):
    records = Records(fed, lost)
    made = []

    def statuses(proxy, pdus, deadline, tell):
        made.append(sorted(pdus))
        return {name: (outlets or {}, None) for name in pdus}

    monkeypatch.setattr(last_outlet, "statuses", statuses)
    last_outlet.compare(node(records).proxy, [look], names)
    return records.written, made


@pytest.mark.parametrize(
    ("look", "lost", "names", "written", "mended", "note"),
    [
        # a board that shows its key
        (Look(), [], [], True, [], None),
        (Look(ssh=ALIVE), [], [], False, [], None),
        (Look(power="off"), [], [], False, [], None),
        # what feeds it is not known
        (Look(), [0], [], False, [], "takes its word; no outlet is switched off"),
        (Look(ssh=ALIVE), [0], [], False, [], None),
        (Look(ssh=ALIVE), [0], ["vm0"], True, ["noted, by an operator's word"], None),
        (Look(check=True), [0], ["vm0"], False, ["would be noted, by an operator's word"], None),
        (Look(found=["something"]), [0], ["vm0"], False, [], "run it again"),
        (Look(lives=True, ssh=ALIVE), [0], ["vm0"], False, [], None),
        (Look(ssh=ALIVE), [0], ["vm1"], False, [], None),
        (Look(found=["something"]), [], ["vm0"], True, [], None),
    ],
)
def test_reconcile_notes_the_outlet_of_a_board_without_a_doubt(monkeypatch, look, lost, names, written, mended, note):
    """Lost: the outlets of all that an earlier release claimed; or an outlet that nothing but a slip names."""
    wrote, asked = compared(monkeypatch, look, {} if lost else {0: None}, lost, names)
    assert wrote == ([(0, HERE)] if written else [])
    assert look.mended == [("what feeds it was not known", done) for done in mended]
    assert len(look.notes) == (note is not None)
    assert note is None or note in look.notes[0]
    assert note is None or "adopt=vm0" in look.notes[0]
    assert asked == [], "no PDU is asked once more"


BOTH = {"1": "on", "2": "off"}


@pytest.mark.parametrize(
    ("look", "names", "outlets", "mended", "note", "left"),
    [
        (Look(), [], BOTH, "noted", None, False),
        (Look(state="booting"), [], BOTH, "noted", None, False),
        (Look(check=True), [], BOTH, "would be noted", None, False),
        (Look(state="power off"), [], BOTH, None, "correct tftp_proxy_boards", True),
        (Look(ssh=ALIVE), [], BOTH, None, "correct tftp_proxy_boards", True),
        (Look(), [], {"1": "on", "2": "on"}, None, "correct tftp_proxy_boards", True),
        # an operator's word
        (Look(ssh=ALIVE), ["vm0"], {}, "noted, by an operator's word", None, False),
        (Look(ssh=ALIVE, check=True), ["vm0"], {}, "would be noted, by an operator's word", None, False),
        (Look(ssh=ALIVE), ["vm1"], {}, None, "correct tftp_proxy_boards", True),
        (Look(ssh=ALIVE, lives=True), ["vm0"], {}, None, "correct tftp_proxy_boards", True),
        (Look(ssh=ALIVE, found=["x"]), ["vm0"], {}, None, "it has a record again", False),
        (Look(ssh=ALIVE, found=["x"], left=True), ["vm0"], {}, None, "it has a record again", True),
        # it is off by both, so whoever starts it proves it
        (Look(ssh=None), [], {"1": "off", "2": "off"}, None, "start_instance -e instance=vm0 takes the outlet", False),
        (Look(ssh=ALIVE), [], {"1": "off", "2": "off"}, None, "correct tftp_proxy_boards", True),
    ],
)
def test_reconcile_notes_a_new_outlet_that_is_proven(monkeypatch, look, names, outlets, mended, note, left):
    """Lost: a board that was plugged elsewhere stays out of reach; or a slip in the wiring becomes the record."""
    wrote, asked = compared(monkeypatch, look, {0: THERE}, names=names, outlets=outlets)
    assert asked == [["pdu-a"]]
    assert wrote == ([(0, HERE)] if mended and not look.work.change.check else [])
    rewired = "rewired: was pdu-a outlet 2, is pdu-a outlet 1"
    assert look.mended == ([(rewired, mended)] if mended else [])
    assert len(look.notes) == (note is not None)
    if note:
        assert look.notes[0].startswith("its wiring names pdu-a outlet 1")
        assert note in look.notes[0]
    assert look.left is left
