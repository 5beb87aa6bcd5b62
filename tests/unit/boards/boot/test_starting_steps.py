# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How it is found out who is on a board before its power is touched, each step by itself. Whole boots are in
test_lifecycle.py.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    DECIDING,
    LISTENING,
    SWITCHING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import (
    last_outlet,
    power_proof,
    presence,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh import WrongHostKey

BOARD = SimpleNamespace(id=3, name="board3", ip="10.0.2.4")


class Work:
    def __init__(self, **more):
        self.did = []
        self.board, self.pdu, self.outlet, self.outlet_name = BOARD, "pdu-a", "5", "pdu-a outlet 5"
        self.claim, self.instance = SimpleNamespace(instance="jackie"), "jackie"
        self.system = SimpleNamespace(host_key="ssh-ed25519 x")
        self.over = self.stays_on = self.ran = self.only_from_off = self.off_by_all = False
        self.changed, self.driver = False, None
        self.doubt, self.state, self.began = None, "power off", "power off"
        self.proxy = SimpleNamespace(store=SimpleNamespace(kept=lambda board: None))
        vars(self).update(more)
        self.came_up_before = more.get("came_up_before", self.ran)
        self.found = SimpleNamespace(state=self.state, power=more.get("power", "off"))

    def look_if_over(self):
        """A work that is over has a lock to give back, which these have not."""

    def say(self, phase, text, seconds=None):
        self.did.append((phase, text))

    def line(self, phase, text):
        self.did.append((f"line {phase}", text))

    def move(self, state):
        self.did.append(("→", state))

    def note(self, thing, before, after):
        self.did.append((thing, before, after))
        return True

    def fail(self, blame, error):
        self.did.append(("fails", blame, str(error)))
        self.over = True

    def quarantine(self, note, remedy="", at_fault=True):
        self.did.append(("quarantine", note + remedy))
        self.over = True


def loop(check=False, reboot=False, **of_store):
    one = Starting.__new__(Starting)
    one.check, one.reboot, one.options = check, reboot, Options()
    one.proxy = SimpleNamespace(store=SimpleNamespace(**of_store))
    one._post = lambda handler, *given: handler(*given)
    one.spawned = []
    one._spawn = lambda function, *given: one.spawned.append((function.__name__, given))
    return one


def boot_of(work, **more):
    known = dict(stage=DECIDING, outlet_now=None, probe=None, signs=None, cycled=False, used=False)
    known.update(answered_at=None, outlet_at=0.0, root_at=None, signs_at=0.0)
    events = dict(cancelled=threading.Event(), has_power=threading.Event(), watching=None)
    return SimpleNamespace(**{"work": work, "board": work.board, **known, **events, **more})


@pytest.mark.parametrize(
    ("reboot", "how", "refuses"),
    [(False, "auto", False), (True, "auto", True), (True, "hard", True), (True, "soft", False)],
)
def test_which_verbs_stop_at_a_doubt_before_anything_else(monkeypatch, reboot, how, refuses):
    """Lost: a reboot by ssh, which needs no outlet; or one by power cuts another's board."""
    did, works = [], [Work(), Work(over=True)]
    monkeypatch.setattr(last_outlet, "settle", lambda works, feeds: did.append(("settle", works, feeds)))
    monkeypatch.setattr(last_outlet, "refuse_doubted", lambda works: did.append(("refuse", works)))
    one = loop(reboot=reboot)
    one.options, one._feeds = Options(how=how), "the feeds"
    one.boots = {number: SimpleNamespace(work=work) for number, work in enumerate(works)}
    one._loop = lambda: did.append(("loop", list(one.boots)))
    one.run()
    assert did == [("settle", works, "the feeds"), *[("refuse", works)] * refuses, ("loop", [0])]


@pytest.mark.parametrize(
    ("check", "key", "reboot", "resumes", "listens", "probe", "asked"),
    [
        (False, "x", False, None, True, None, True),
        (True, "x", False, None, False, None, True),
        # not made ready: there is no key that it could prove
        (True, None, False, None, False, False, False),
        (False, "x", True, None, True, None, False),
        (False, "x", False, (1.0, set()), True, None, False),
    ],
)
def test_what_is_asked_of_a_board_at_first(check, key, reboot, resumes, listens, probe, asked):
    """Lost: a dry run that waits for nobody's answer, or a board that is cut while it may prove its key."""
    opened, probed = [], []
    one, boot = loop(check, reboot), boot_of(Work(system=SimpleNamespace(host_key=key)))
    one._open_line, one._probe, one._resumes = opened.append, probed.append, lambda boot: resumes
    one._begin(boot)
    assert opened == ["pdu-a"]
    assert one.spawned == ([("_listen", (boot,))] if listens else [])
    assert (boot.probe, probed) == (probe, [boot] if asked else [])


@pytest.mark.parametrize(
    ("state", "power"),
    [("running", "on"), ("booting", "on"), ("power off", "off"), ("shutting down", "off"), ("shutting down", "on")],
)
@pytest.mark.parametrize("check", [False, True])
def test_a_board_that_may_be_in_use_is_asked_for_long(monkeypatch, state, power, check):
    """Lost: the power of a busy board; or seconds for each free one; or that somebody waits at all."""
    timers, waited = [], []

    def timer(seconds, post, given):
        timers.append((seconds, post, given))
        made = SimpleNamespace(start=lambda: timers.append(f"started, daemon={made.daemon}"), daemon=False)
        return made

    monkeypatch.setattr(starts, "threading", SimpleNamespace(Timer=timer, Event=threading.Event))
    one, boot = loop(check), boot_of(Work(state=state, power=power))
    one._wait_for_ssh = lambda boot, deadline, handler: waited.append((boot, 1 < deadline.seconds < 3, handler))
    one._probe(boot)
    if power == "on":
        assert boot.watching is boot.cancelled
        assert one.spawned == [("_look", (boot, boot.cancelled))]
        assert timers == ([] if check else [(starts.TELL, one._post, (one._tell_look, boot)), "started, daemon=True"])
        assert waited == []
    else:
        assert (one.spawned, timers, waited) == ([], [], [(boot, True, one._on_probe)])
    assert 2 < starts.TELL < 4, "soon, and not for each board that answers"


@pytest.mark.parametrize(
    ("more", "over", "told"),
    [
        ({}, False, True),
        ({"stage": SWITCHING}, False, False),
        ({"outlet_now": "off"}, False, False),
        ({"outlet_now": None}, False, False),
        ({"probe": False}, False, False),
        ({}, True, False),
    ],
)
def test_who_waits_for_a_board_that_does_not_answer_is_told_how_long(monkeypatch, more, over, told):
    """Lost: why a verb says nothing for a minute; or a line about a board that has answered."""
    monkeypatch.setattr(presence, "strain", lambda: 2.0)
    work = Work(over=over)
    Starting._tell_look(boot_of(work, **{"outlet_now": "on", **more}))
    text = starts.STILL_ASKED.format(quiet=2 * presence.QUIET, longest=2 * presence.LONGEST)
    assert work.did == ([("wait", text)] if told else [])
    assert starts.STILL_ASKED.format(quiet=presence.QUIET, longest=presence.LONGEST).endswith(
        "up to 15 s, and where its port takes or refuses calls 60 s"
    ), "a minute, as the guide says"


def test_a_look_is_heard_of_its_own_board(monkeypatch):
    """Lost: what a board in use answered."""
    got, one, boot = [], loop(), boot_of(Work())
    watching = threading.Event()
    monkeypatch.setattr(presence, "look", lambda work, over, limit: (work, over))
    one._on_ssh = lambda *given: got.append(given)
    one._look(boot, watching)
    assert got[0][:4] == (boot, watching, one._on_probe, (boot.work, watching))


@pytest.mark.parametrize(
    ("answer", "probe"),
    [
        (True, True),
        (presence.OWN_KEY, True),
        (False, False),
        (None, False),
        (presence.SILENT, False),
        (presence.ALIVE, presence.ALIVE),
        (presence.OTHER_KEY, presence.OTHER_KEY),
        (WrongHostKey("another host key answers there", "10.0.2.4"), presence.OTHER_KEY),
    ],
)
def test_what_an_answer_means(answer, probe):
    """Lost: the power of somebody else's board; or a board that runs is booted anew."""
    one, boot, decided = loop(), boot_of(Work()), []
    one._decide = decided.append
    one._on_probe(boot, answer, 1.0)
    assert (boot.probe, decided) == (probe, [boot])


SILENT = {"outlet_now": "on", "probe": False}


@pytest.mark.parametrize(
    ("of_work", "ours", "check", "done"),
    [
        ({"only_from_off": True, "state": "running"}, True, False, "fails"),
        ({"state": "booting"}, True, False, "cold start"),
        ({"state": "booting", "used": True}, True, False, "left"),
        ({"state": "booting", "used": True}, False, False, "quarantine"),
        ({"state": "booting", "used": None}, True, False, "waits"),
        ({"state": "power off"}, True, False, "cold start"),
        ({"ran": True, "state": "running"}, True, False, "left"),
        ({"ran": True, "state": "booting"}, True, False, "left"),
        ({"ran": True, "came_up_before": False, "state": "booting"}, True, False, "cold start"),
        ({"ran": True, "came_up_before": False, "state": "booting", "used": True}, True, False, "left"),
        (
            {"ran": True, "came_up_before": False, "state": "shutting down", "power": "on"},
            True,
            False,
            "looks into its root",
        ),
        ({"ran": True, "came_up_before": False, "state": "power off"}, True, False, "looks into its root"),
        ({"ran": True, "state": "power off"}, True, False, "looks into its root"),
        ({"ran": True, "state": "power off", "root_at": 1.0}, True, False, "cold start"),
        ({"ran": True, "state": "power off", "root_at": 1.0, "used": True}, True, False, "left"),
        ({"ran": True, "state": "shutting down", "power": "on"}, True, False, "left"),
        ({}, False, False, "quarantine"),
        ({}, False, True, "said"),
        ({"ran": True, "state": "running"}, True, True, "would ask"),
        ({"state": "booting", "used": True}, True, True, "would ask"),
        ({"state": "booting"}, True, True, "cold start"),
        ({"state": "running"}, False, True, "said"),
    ],
)
def test_a_silent_board_that_is_on(monkeypatch, of_work, ours, check, done):
    """Lost: the work of who is on a board whose network is cut; or a dry run that puts boards out of use, or says that
    one stays on which would be cut.
    """
    used = {"used": of_work.get("used", False), "root_at": of_work.get("root_at")}
    work = Work(**of_work)
    one, boot, got = loop(check), boot_of(work, **SILENT, **used), []
    one._resumes, one._was_ours = lambda boot: None, lambda boot: ours
    monkeypatch.setattr(starts, "note_unwatched", lambda work, *text: None)
    one._cold_start = lambda boot: got.append("cold start")
    one._leave = lambda boot, why: got.append(("left", why))
    one._look_at_root = lambda boot: (got.append("its root"), vars(boot).update(used=None))
    one._would_ask = lambda boot: got.append("asks")
    one._decide(boot)
    nobodys = starts.NOBODYS.format(name="jackie")
    expected = {
        "left": ([("left", starts.SILENT_AT_WORK)], []),
        "cold start": (["cold start"], []),
        "waits": ([], []),
        "looks into its root": (["its root"], []),
        "fails": ([], [("fails", None, f"board3: {starts.ON_BY_NOW.format(name='jackie')}")]),
        "quarantine": ([], [("quarantine", nobodys)]),
        "said": ([], [("error", nobodys)]),
        "would ask": (["asks"], []),
    }
    assert (got, work.did) == expected[done]
    assert work.over is (done in ("fails", "quarantine", "said"))


def test_a_board_in_doubt_that_is_on_for_nobody_says_the_doubt():
    """Lost: that its wiring is wrong, which is why somebody else's board seems to be this one."""
    doubt = Refused("its wiring names another", "board3", "correct it")
    work = Work(doubt=doubt)
    one = loop()
    one._resumes, one._was_ours = lambda boot: None, lambda boot: False
    one._decide(boot_of(work, **SILENT))
    assert work.did == [("quarantine", "its wiring names another: correct it")]


@pytest.mark.parametrize(
    ("of_work", "ours", "check", "done"),
    [
        ({"state": "booting"}, True, False, "cold start"),
        ({"state": "booting"}, True, True, "cold start"),
        ({"state": "booting", "used": None}, True, False, "waits"),
        ({"state": "booting", "used": True}, True, False, "left"),
        ({"state": "booting", "used": True}, True, True, "would ask"),
        ({"state": "booting", "ran": True}, True, False, "left"),
        ({"state": "booting", "ran": True, "came_up_before": False}, True, False, "cold start"),
        ({"state": "booting"}, False, False, "left"),
        ({"state": "running"}, True, False, "left"),
        ({"state": "running"}, True, True, "would ask"),
    ],
)
def test_a_board_that_answers_calls_and_proves_no_key(monkeypatch, of_work, ours, check, done):
    """Lost: the work of who is there; or a boot that ended in the initrd, for a fault of the proxy, until somebody says
    in so many words that it may be cut.
    """
    used = of_work.get("used", False)
    work = Work(**of_work, power="on")
    one, got = loop(check), []
    boot = boot_of(work, outlet_now="on", probe=presence.ALIVE, used=used, root_at=1.0, answered_at=1.0)
    one._resumes, one._was_ours = lambda boot: None, lambda boot: ours
    monkeypatch.setattr(starts, "note_unwatched", lambda work, *text: None)
    one._cold_start = lambda boot: got.append("cold start")
    one._leave = lambda boot, why: got.append(why)
    one._would_ask = lambda boot: got.append("asks")
    one._decide(boot)
    expected = {"left": [starts.NOT_PROVEN], "cold start": ["cold start"], "waits": [], "would ask": ["asks"]}
    assert (got, work.did) == (expected[done], [])


def test_a_board_that_runs_is_only_said_to_run():
    """Lost: the outlet of a board that nobody saw come up, noted as proven."""
    work, noted = Work(state="booting"), []
    one, boot = loop(), boot_of(work, outlet_now="on", probe=True)
    one._resumes = lambda boot: None
    one._feeds = SimpleNamespace(remember=lambda work, proven: noted.append(proven))
    one._decide(boot)
    assert (noted, work.over) == ([False], True)
    assert work.did == [
        ("→", "running"),
        ("line running", "already running, ssh answers with its own host key"),
    ]


def test_a_board_that_is_left_says_what_to_do():
    """Lost: whose key answers there, and how to have its power cut."""
    work = Work()
    Starting._leave(boot_of(work), presence.ANOTHERS)
    why = "another host key than its own answers at its address 10.0.2.4"
    assert work.did[0] == ("error", f"the board is left as it is: {why}")
    assert work.did[1][:2] == ("fails", None)
    assert work.did[1][2].startswith(f"board3: {why}: see which machine that is")
    assert work.did[1][2].endswith("reboot_instance -e instance=jackie -e how=hard")


@pytest.mark.parametrize(("claim", "had_power", "ours"), [(None, False, True), ("c", True, True), ("c", False, False)])
def test_a_board_is_ours_that_had_power_for_its_claim(claim, had_power, ours):
    """Lost: the board of who plugged it in by hand."""
    one = loop(had_power=lambda asked: (asked, had_power) == ("c", True))
    assert one._was_ours(boot_of(Work(claim=claim))) is ours


@pytest.mark.parametrize(
    ("state", "claim", "has_run", "life"),
    [
        ("power off", None, False, False),
        ("power off", "c", False, False),
        ("power off", "c", True, True),
        ("running", None, False, True),
        ("shutting down", "c", False, True),
    ],
)
@pytest.mark.parametrize("lives", [True, False])
def test_how_long_a_board_that_is_off_is_listened_to(monkeypatch, state, claim, has_run, life, lives):
    """Lost: a board that lives on by another outlet gets a boot of its own; or seconds for each new board."""
    asked = []

    class Silence:
        def __init__(self, work):
            pass

        def life(self, over):
            asked.append(over)
            return ["its console's log grows"] * lives

        def lives(self):
            return lives

    monkeypatch.setattr(power_proof, "Silence", Silence)
    one, boot, heard = loop(has_run=lambda asked: has_run), boot_of(Work(state=state, claim=claim)), []
    one._on_heard = heard.append
    one._listen(boot)
    assert asked == ([boot.has_power] if life else [])
    assert boot.signs == (["its console's log grows" if life else "something answers at 10.0.2.4"] if lives else [])
    assert heard == [boot]


@pytest.mark.parametrize(
    ("over", "stage", "signs", "ours", "done"),
    [
        (False, LISTENING, [], True, "cold start"),
        (False, LISTENING, ["it lives"], True, "fails"),
        (False, LISTENING, ["it lives"], False, "quarantine"),
        (False, LISTENING, None, True, None),
        (False, DECIDING, [], True, None),
        (True, LISTENING, [], True, None),
    ],
)
def test_a_board_that_lives_on_behind_an_outlet_that_is_off(over, stage, signs, ours, done):
    """Lost: somebody else's board, which another outlet feeds, is taken for a free one that is off."""
    work, got = Work(over=over), []
    one, boot = loop(), boot_of(work, stage=stage, signs=signs)
    one._was_ours, one._cold_start = lambda boot: ours, lambda boot: got.append(boot.stage)
    one._on_heard(boot)
    note = power_proof.contradiction(work, signs or [])
    assert got == ([DECIDING] if done == "cold start" else [])
    assert work.did == {
        "fails": [("error", f"nothing is switched: {note}"), ("fails", None, f"board3: {note}")],
        "quarantine": [("quarantine", note)],
    }.get(done, [])


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("before", "doubt", "off_by_all", "done"),
    [
        ("on", False, False, ["off"]),
        ("off", False, False, ["on"]),
        ("off", True, True, ["on"]),
        ("off", True, False, ["refused"]),
        ("on", True, True, ["refused"]),
    ],
)
def test_a_cold_start(monkeypatch, check, before, doubt, off_by_all, done):
    """Lost: another board's power by a wrong wiring; a power cut for one that is off; or a dry run that switches."""
    got = []
    work = Work(doubt="in doubt" if doubt else None, off_by_all=off_by_all, state="power off")
    monkeypatch.setattr(last_outlet, "refuse", lambda work: got.append("refused"))
    one, boot = loop(check), boot_of(work, outlet_now=before, watching="somebody")
    one._off = lambda boot, then: got.append("off" if then == one._on else "wrong")
    one._on, one._may_boot = lambda boot: got.append("on"), lambda boot: True
    one._cold_start(boot)
    assert got == ([] if check and done != ["refused"] else done)
    assert boot.cycled is (done == ["on"] and not check)
    assert boot.cancelled.is_set() is (done != ["refused"])
    if done != ["refused"]:
        after = {"power": "cycled" if before == "on" else "on", "state": "running"}
        assert work.did[0] == ("board3", {"power": before, "state": "power off"}, after)
        assert work.over is check


def test_a_cold_start_that_waits_for_its_turn():
    """Lost: the link, which too many boards share."""
    one, boot = loop(False), boot_of(Work(state="power off"), outlet_now="off", watching="somebody")
    one._may_boot = lambda boot: False
    one._on = lambda boot: pytest.fail("it is switched")
    one._cold_start(boot)
    assert boot.work.did == []
    assert boot.cycled is False
