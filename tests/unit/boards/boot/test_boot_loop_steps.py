# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that are switched on and followed, each step by itself; those that go wrong are in test_judging.py. Whole
boots are in test_lifecycle.py.

Tests boards/boot/proven_cuts.py.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import (
    boot_loop,
    boot_progress,
    power_marks,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import BootPlaces
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    ASKED,
    BOOTING,
    DECIDING,
    LISTENING,
    QUEUED,
    SWITCHING,
    Boot,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import last_outlet, pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    KERNEL,
    NFS,
    SYSTEM,
    TFTP,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh import WrongHostKey
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

#: A proxy node without PDUs or a limit of its boots.
CONFIG = SimpleNamespace(pdus={}, boots_at_once=0, interface="", run_folder="/dev/null")  # nothing is written there


class Driver:
    def __init__(self, did):
        self.did, self.answer, self.watched = did, True, []

    def switched(self, board, state):
        self.did.append(("driver", state))

    def from_flash(self, board):
        return False

    def files(self, board):
        return {"vmlinuz": KERNEL}

    def self_test(self, board, system):
        self.did.append("self test")
        return ["DHCP is down"]

    def answers(self, board, system, deadline, watching, report):
        report("image", "copied")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @contextmanager
    def watch(self, boards, seen):
        self.watched.append([board.id for board in boards])
        yield
        self.watched.append("over")


class Work:
    def __init__(self, number=0, **more):
        self.did, self.phases, self.evidence = [], {}, {}
        self.board = SimpleNamespace(id=number, name=f"board{number}", ip="10.0.2.1")
        self.pdu, self.outlet, self.outlet_name, self.system = "pdu-a", "5", "pdu-a outlet 5", "its system"
        self.proxy, self.driver = SimpleNamespace(wiring=lambda board: Wire()), Driver(self.did)
        self.over, self.doubt, self.power_proof, self.state = False, None, None, "power off"
        vars(self).update(more)

    def look_if_over(self):
        if self.over:
            self.did.append("ends")

    def say(self, phase, text, seconds=None):
        self.did.append((phase, text, seconds))

    def move(self, state):
        self.did.append(("→", state))

    def power_seen(self, power):
        self.did.append(("seen", power))

    def before_boot(self):
        self.did.append("before boot")


@pytest.fixture
def loop(monkeypatch):
    """Make a loop of works whose threads are kept and whose inbox is done at once."""
    monkeypatch.setattr(boot_loop.console, "begin", lambda proxy, board: proxy.did.append("console"))
    monkeypatch.setattr(boot_loop.console, "begin_anew", lambda proxy, board: proxy.did.append("log anew"))

    def make(*works, **options):
        did = works[0].did
        store = SimpleNamespace(event=lambda *given: did.append(given), lost=list, kept_boards=list, begun=dict)
        proxy = SimpleNamespace(store=store, did=did, boards={}, config=CONFIG)
        one = Starting(proxy, list(works), Options(**options))
        one._places = BootPlaces("no run folder", None)
        one.spawned = []
        one._spawn = lambda function, *given: one.spawned.append((function, given))
        one._post = lambda handler, *given: handler(*given)
        one.lines["pdu-a"] = SimpleNamespace(ask=lambda *given: did.append(("ask", *given)))
        return one

    return make


def test_a_loop_knows_its_boards_and_how_it_is_done(loop):
    """Lost: a dry run that switches, or a verb's own timeout."""
    works = [Work(0), Work(7)]
    one = loop(*works, check=True, timeout=7.0)
    assert {number: boot.work for number, boot in one.boots.items()} == {0: works[0], 7: works[1]}
    assert (one.check, one.options.timeout, one.reboot) == (True, 7.0, False)
    assert isinstance(one._feeds, last_outlet.Feeds)


def test_all_boards_are_watched_and_listened_to_at_once(loop, monkeypatch):
    """Lost: what a board asks for at its first breath; or a board that waits for another's thread until its time is
    over.
    """
    works = [Work(0), Work(1, pdu="pdu-b"), Work(2)]
    works[2].driver = works[0].driver
    one, begun, most, real = loop(*works), [], [], boot_loop.ThreadPoolExecutor
    monkeypatch.setattr(
        boot_loop, "ThreadPoolExecutor", lambda max_workers: most.append(max_workers) or real(max_workers)
    )
    monkeypatch.setattr(pdu_loop, "SELDOM", 0.0)
    one.lines = {}

    def begin(boot):
        assert "over" not in boot.work.driver.watched
        begun.append(boot.work.board.id)

    looked, turns = [], []

    def turn(_most=None):
        number = next(number for number, work in enumerate(works) if not work.over)
        works[number].over = True
        works[number].look_if_over = lambda: looked.append((number, len(turns)))
        turns.append(number)

    one._begin, one._turn = begin, turn
    closed = []
    one._close_lines = lambda: closed.append(True)
    one._loop()
    assert begun == [0, 1, 2]
    assert (works[0].driver.watched, works[1].driver.watched) == ([[0, 2], "over"], [[1], "over"])
    # a board may have six threads at a time, a PDU two, and three are for all; more would cost a node its memory
    assert most == [6 * 3 + 2 * 2 + 3]
    assert len(closed) == 3
    # each as soon as it is over (its number, the turns until then), and once
    assert looked == [(0, 1), (1, 2), (2, 3)]
    assert all(boot.cancelled.is_set() for boot in one.boots.values())
    assert one.spawned == [(one._listen_for_ends, ()), (one._listen_for_places, ())]
    assert one._ended.is_set(), "who listens would never end"


@pytest.mark.parametrize(
    ("stage", "over", "asks"),
    [
        (DECIDING, False, True),
        (LISTENING, False, True),
        (SWITCHING, False, True),
        (ASKED, False, False),
        (QUEUED, False, False),
        (BOOTING, False, False),
        (SWITCHING, True, False),
    ],
)
def test_a_pdus_session_is_held_for_who_may_ask_it(loop, stage, over, asks):
    """Lost: minutes for all others of that PDU; or the session of a board that is to be switched."""
    work, other = Work(over=over), Work(1, pdu="pdu-b")
    one = loop(work, other)
    one.boots[0].stage = stage
    assert one._asking("pdu-a") == ([work] if asks else [])


def test_only_the_newest_wait_for_a_board_goes_on(loop):
    """Lost: a thread a try; or the answer to an earlier one counts."""
    one = loop(Work())
    boot = one.boots[0]
    before = boot.cancelled
    one._wait_for_ssh(boot, "a deadline", "a handler")
    assert before.is_set()
    assert boot.watching is boot.cancelled
    assert not boot.cancelled.is_set()
    assert one.spawned == [(one._ssh, (boot, boot.watching, "a deadline", "a handler"))]


@pytest.mark.parametrize("answer", [True, False, WrongHostKey("x", "y"), StepFailed("image", "x", "y", "z")])
def test_an_answer_and_the_steps_before_it_are_heard(loop, answer):
    """Lost: that a board runs, or why it does not, or what its driver did on it."""
    work, got = Work(), []
    one = loop(work)
    boot = one.boots[0]
    boot.stage, boot.powered, boot.watching = BOOTING, time.monotonic(), threading.Event()
    work.driver.answer = answer
    one._ssh(boot, boot.watching, None, lambda boot, said, at: got.append((said, 0 <= at - boot.powered < 600)))
    assert got == [(answer, True)]
    assert [said[:2] for said in work.did] == [("image", "copied")]


# ---- power


def marked(did):
    """In place of power_marks.begins; a list has what it does."""

    def begins(_proxy, _board):
        did.append("clock read")
        return lambda: did.append("marked")

    return begins


@pytest.mark.parametrize("over", [False, True])
def test_a_board_is_switched_on(loop, monkeypatch, over):
    """Lost: where its console's part begins; or a board that may not boot gets power all the same."""
    work = Work()
    monkeypatch.setattr(power_marks, "begins", marked(work.did))
    one = loop(work)
    boot = one.boots[0]
    boot.kinds, boot.tries = {TFTP: 1.0}, 1
    if over:
        work.before_boot = lambda: setattr(work, "over", True)
    one._on(boot)
    assert (boot.stage, boot.tries, boot.kinds) == (SWITCHING, 2, {})
    if over:
        assert work.did == ["log anew"]
        return
    switch = (0, "switch", "pdu-a outlet 5 is to be switched on")
    marks = ["clock read", switch, "marked"]
    assert work.did == ["log anew", "before boot", "console", ("→", "booting"), *marks, ("ask", "5", "on", None)]


@pytest.mark.parametrize(
    ("doubt", "proof", "refused"), [(None, None, False), ("a doubt", None, True), ("a doubt", {"pdu": "x"}, False)]
)
def test_a_board_in_doubt_is_not_switched_off_by_who_did_not_switch_it_on(loop, monkeypatch, doubt, proof, refused):
    """Lost: another board's power; or a second try of a board that this call switched on."""
    monkeypatch.setattr(last_outlet, "refuse", lambda work: work.did.append("refused"))
    work = Work(doubt=doubt, power_proof=proof)
    one = loop(work)
    boot = one.boots[0]
    one._off(boot, "then")
    assert (work.did == ["refused"]) is refused
    assert (boot.stage, boot.then) == ((DECIDING, None) if refused else (SWITCHING, "then"))


@pytest.mark.parametrize("after", ["on", "off"])
@pytest.mark.parametrize(
    ("pdu", "outlet", "stage", "over", "counts"),
    [
        ("pdu-a", "5", SWITCHING, False, True),
        ("pdu-a", "6", SWITCHING, False, False),
        ("pdu-b", "5", SWITCHING, False, False),
        ("pdu-a", "5", DECIDING, False, False),
        ("pdu-a", "5", SWITCHING, True, False),
    ],
)
def test_an_outlet_that_was_switched(loop, after, pdu, outlet, stage, over, counts):
    """Lost: what comes next; or a board takes the switching of another for its own."""
    work = Work(over=over)
    one = loop(work)
    boot = one.boots[0]
    boot.stage, boot.switch_seconds = stage, 1.0
    boot.then = lambda boot: work.did.append("then")
    one._powered = lambda boot: work.did.append("powered")
    one._on_switched(pdu, outlet, "x", after, 2.5)
    if counts:
        then = [(0, "switch", "pdu-a outlet 5 stays off"), "then"] if after == "off" else ["powered"]
        assert work.did == [("seen", after), ("driver", after), *then]
        assert (boot.outlet_now, boot.switch_seconds, boot.cycled) == (after, 3.5, after == "off")
    else:
        assert (work.did, boot.outlet_now, boot.switch_seconds) == ([], None, 1.0)


@pytest.mark.parametrize("wait", [True, False])
def test_a_board_that_has_power_is_followed(loop, wait):
    """Lost: how long its switching took and how it is proven; or a call that waits though nobody asked it to."""
    work = Work()
    one = loop(work, wait=wait, timeout=77.0)
    boot = one.boots[0]
    boot.stage, boot.switch_seconds, boot.way = SWITCHING, 2.5, "on → off → on"
    boot.kinds = {NFS: time.monotonic()}
    one._powered(boot)
    assert (boot.stage, boot.switch_seconds, work.phases["power"]) == (BOOTING, 0.0, 2.5)
    assert work.did[0] == ("power", "pdu-a outlet 5: on → off → on, read back", 2.5)
    assert work.power_proof == dict(pdu="on → off → on, read back", board=None)
    assert work.over is not wait
    if wait:
        assert work.did[1][:2] == ("nfs", "root mounted")
        (ssh, (_boot, watching, deadline, handler)), early = one.spawned
        assert (ssh, deadline.seconds, handler, watching) == (one._ssh, 77.0, one._on_answer, boot.watching)
        assert early == (one._listen_for_requests, (boot, boot.watching))
    else:
        assert (one.spawned, len(work.did)) == ([], 1)


# ---- what is known of a boot


def test_what_is_known_of_a_boot_that_begins():
    """Lost: a board is taken for one that was decided on, heard, or found guilty already."""
    boot = Boot(Work())
    assert (boot.stage, boot.unheard, boot.early, boot.watching, boot.signs, boot.powered) == (
        DECIDING,
        False,
        [],
        None,
        None,
        None,
    )
    assert not boot.cancelled.is_set()
    assert (boot.was_served, boot.roles, boot.flash, boot.console) == (False, [], False, None)


@pytest.mark.parametrize(
    ("kinds", "asked", "connected", "served", "at_work"),
    [
        ([], [], False, False, False),
        ([FIRMWARE], [], False, False, False),
        ([FIRMWARE, TFTP], [], False, True, False),
        ([], [KERNEL], False, True, False),
        ([FIRMWARE, NFS], [], False, True, True),
        ([FIRMWARE], [], True, False, True),
    ],
)
@pytest.mark.parametrize("ran", [False, True])
def test_what_a_boot_showed(kinds, asked, connected, served, at_work, ran):
    """Lost: whether this node answered it; or that its tenant's system has its root."""
    boot = Boot(Work())
    boot.work.ran = ran
    boot.work.driver.has_root = lambda board: connected
    boot.kinds, boot.asked = dict.fromkeys(kinds, 1.0), dict.fromkeys(asked, 1.0)
    assert (boot.was_served, boot.may_be_at_work) == (served, ran and at_work)
    boot.early = ["of this try"]
    boot.work.driver.from_flash = lambda board: board is boot.board
    assert boot.flash is True
    boot.asked = {KERNEL: 1.0, SYSTEM: 2.0}
    assert boot.roles == [KERNEL]
    boot.forget()
    assert boot.early == []


def test_the_events_by_which_a_boot_is_known_again():
    """Lost: boots that an earlier release began, whose events say just this, are switched off in the middle."""
    assert boot_progress.BEGINS == {"power": "on, read back", "reboot": "boot request seen"}
