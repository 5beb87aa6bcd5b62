# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's wipe, step by step: who may be wiped, what is said, what follows. Whole wipes: test_wipes.py."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import wipes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.disk_areas import Area
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    Lost,
    Refused,
    StepFailed,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import NoProgram
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

BOARD = SimpleNamespace(id=0, name="board0")
USUAL = WipeRequest()


class Work:
    """A Wipe of board 0 with two disks; what is done with it goes into `done`."""

    def __init__(self, state="shutting down", claim=None, dry=False, **more):
        self.board, self.state, self.claim, self.instance = BOARD, state, claim, claim and "vm0"
        self.change, self.done = SimpleNamespace(check=dry), []
        self.proxy = SimpleNamespace(
            actor="me",
            store=self,
            disks=lambda board: ["/dev/sda", "/dev/sdb"],
            wiring=lambda board: Wire(**self.wired),
        )
        self.record = SimpleNamespace(state=state)
        self.over = self.failed = False
        self.needed, self.driver, self.error, self.disks, self.hardware = True, None, None, [], None
        self.key_proof, self.wired = "asked for once", {}
        vars(self).update(more)

    @contextmanager
    def transaction(self):
        self.done.append("begin")
        yield
        self.done.append("end")

    def read(self):
        self.done.append("read")

    def note(self, *note):
        self.done.append(("note", *note))

    def line(self, *line):
        self.done.append(line)

    def say(self, phase, text, seconds=None):
        assert seconds is None or 0 <= seconds < 1000
        self.done.append((phase, text))

    def move(self, state, note):
        self.state = state
        self.done.append(("move", state, note))

    def fail(self, blame, error, **facts):
        self.failed = self.over = True
        self.error = str(error)
        self.done.append(("fail", blame, str(error)))

    def quarantine(self, note):
        self.done.append(("quarantine", note))


@pytest.fixture
def planned(monkeypatch):
    """What `_plan` does with a Work; words say what is known of its board."""

    def plan(work, request=USUAL, unnamed=(), unwiped=("x",), ram=True, ready=(), ran=None, never_ran=False):
        def must_never_have_run(proxy, board, claim):
            if ran:
                raise Refused("ran", board.name)

        monkeypatch.setattr(wipes, "must_never_have_run", must_never_have_run)
        monkeypatch.setattr(wipes.disk_records, "unnamed", lambda proxy, board: list(unnamed))
        monkeypatch.setattr(wipes.disk_records, "unwiped", lambda proxy, board: list(unwiped))
        monkeypatch.setattr(wipes, "has_ram_image", lambda proxy, board: ram)
        monkeypatch.setattr(wipes, "made_ready", lambda proxy, board: list(ready))
        wipes._plan(work, request, SimpleNamespace(of=lambda board: "driver"), never_ran)
        return work.done

    return plan


NOTED = ("note", "board0 disks", {"wiped": False}, {"wiped": "/dev/sda, /dev/sdb", "method": "discard"})


def test_a_board_that_is_to_be_wiped(planned):
    work = Work()
    assert planned(work, ran=True) == [NOTED]
    assert (work.over, work.needed, work.driver) == (False, True, "driver")
    look = Work()
    assert planned(look, WipeRequest(inspect=True), unwiped=()) == []
    assert (look.over, look.needed, look.driver) == (False, False, "driver")


@pytest.mark.parametrize("given", [{}, dict(request=WipeRequest(inspect=True), ram=False)])
def test_a_board_with_nothing_to_do_is_over(planned, given):
    """Lost: hours of RAM boots of boards that are wiped, or that cannot boot into RAM."""
    work = Work()
    assert planned(work, unwiped=(), **given) == []
    assert (work.over, work.failed, work.needed) == (True, False, False)


def test_a_board_that_is_left_on_is_not_wiped(planned, monkeypatch):
    """Lost: a disk that somebody's system, which came up before it could be stopped, has mounted."""
    monkeypatch.setattr(wipes, "is_left_on", lambda proxy, board, claim: claim == "hers")
    work = Work(claim="hers")
    assert planned(work) == [(wipes.PHASE, wipes.NOT_WIPED.format(name="vm0"))]
    assert (work.over, work.failed, work.driver) == (True, False, None)


@pytest.mark.parametrize(
    ("work", "given", "why"),
    [
        (Work(), dict(never_ran=True, ran=True), "board0: ran"),
        (Work(), dict(unnamed=["disk c is not named"]), "board0: disk c is not named: then run this again"),
        (Work("running"), {}, "board0: is running: stop it first: tilera_boot with state stopped"),
        (Work("booting"), {}, "board0: is booting: stop it first: tilera_boot with state stopped"),
        (Work(), dict(ready=["a", "b"]), "board0: is made ready for somebody (a; b): remove its image first ("),
        (Work(claim="x"), dict(ready=["a"]), "board0: is made ready for vm0 (a): remove its image first ("),
    ],
)
def test_a_board_that_is_somebodys_is_not_wiped(planned, work, given, why):
    """Lost: a running instance's disk."""
    ((_fail, blame, error),) = planned(work, **given)
    assert (blame, error[: len(why)]) == (None, why)


@pytest.mark.parametrize(
    ("state", "given", "said"),
    [
        ("shutting down", {}, "would boot into RAM and wipe /dev/sda, /dev/sdb"),
        (
            "running",
            {},
            "would boot into RAM and wipe /dev/sda, /dev/sdb, once it is off and nothing is made ready on it",
        ),
        (
            "error",
            dict(ready=["a"], request=WipeRequest(inspect=True), unwiped=()),
            "would boot into RAM, once it is off and",
        ),
    ],
)
def test_a_dry_run_says_what_would_be(planned, state, given, said):
    work = Work(state, dry=True)
    phase, text = planned(work, **given)[-1]
    assert (phase, text[: len(said)], work.over, work.failed) == ("wipe", said, True, False)
    assert ("once" in text) == ("once" in said)


@pytest.mark.parametrize(
    ("state", "claim", "needed", "moves"),
    [
        (
            "power off",
            None,
            True,
            [("error", "its disks are being wiped"), ("shutting down", "its disks are being wiped")],
        ),
        ("error", None, False, [("shutting down", "its hardware is being looked at")]),
        ("shutting down", "vm0", True, [("shutting down", "its disks are being wiped")]),
        ("power off", "vm0", True, []),
        ("maintenance", None, True, []),
    ],
)
def test_nobody_gets_a_board_meanwhile(state, claim, needed, moves):
    """Lost: a board whose disk is being wiped, given to somebody."""
    work = Work(state, claim, needed=needed)
    wipes._take_out(work)
    assert work.done == ["begin", "read", *[("move", *move) for move in moves], "end"]

    def broken():
        raise HeteroError("disk is full")

    work = Work(read=broken)
    wipes._take_out(work)
    assert work.done == ["begin", ("fail", None, "disk is full")]


@pytest.mark.parametrize(
    ("more", "verify", "note"),
    [
        (dict(failed=True, error="away"), "sample", "not wiped yet: away"),
        (dict(failed=True, error="away", needed=False), "sample", "away"),
        ({}, "sample", "wiped, proven"),
        ({}, "full", "wiped, proven"),
        ({}, "none", "wiped, not proven"),
        (dict(needed=False), "none", "looked at"),
    ],
)
def test_what_is_noted_of_a_board_until_it_is_given_back(more, verify, note):
    work = Work(**more)
    wipes._settle(work, WipeRequest(verify=verify))
    assert (work.done, work.over) == ([("move", "shutting down", note)], True)
    other = Work("error", **more)
    wipes._settle(other, WipeRequest(verify=verify))
    assert (other.done, other.over) == ([], True)


@pytest.mark.parametrize(
    ("errors", "blame", "end"),
    [
        ([Lost("gone")], "board", "gone: run this again"),
        ([TimedOut("late"), BadInput("cannot")], "board", "late; cannot: run this again"),
        ([BadInput("cannot")], "proxy", "cannot"),
        ([Refused("no")], "proxy", "no"),
        ([StepFailed("x", "broke")], "proxy", "broke"),
        ([NoProgram("dd: not found")], "proxy", "dd: not found"),
    ],
)
def test_what_says_nothing_against_a_disk_costs_no_board(errors, blame, end):
    work = Work()
    wipes._failed(work, errors)
    text = "; ".join(map(str, errors))
    assert work.done == [("error", f"not wiped: {text}"), ("fail", blame, end)]


def test_a_disk_that_fails_costs_its_board():
    """Lost: a board with a disk that nobody can wipe, to the next tenant."""
    work = Work()
    wipes._failed(work, [Lost("gone"), HeteroError("broken")])
    assert work.done == [("quarantine", "its disk cannot be wiped: gone; broken")]
    kept = Work("maintenance")
    wipes._failed(kept, [HeteroError("broken")])
    assert kept.done == [("error", "not wiped: broken"), ("fail", "proxy", "broken")]


def test_places_that_a_wipe_does_not_reach(monkeypatch):
    """Lost: what a tenant hid, or a board whose hidden places its operator has accepted."""
    found = [Area("sda-hpa", "5 sectors", "x"), Area("sdc", "a disk", "y")]
    asked = []
    monkeypatch.setattr(wipes, "areas", lambda *given: asked.append((*given[:2], given[2].seconds)) or (found, ["DCO"]))
    work = Work(wired={"accept_unwiped": ["sda-hpa", "sdc"]})
    assert wipes._left_out(work, "shell", ["/dev/sda"]) == (found, ["DCO"])
    assert asked == [("shell", ["/dev/sda"], 60.0)]
    assert work.done == [
        ("wipe", "not wiped, accepted: sda-hpa (5 sectors)"),
        ("wipe", "not wiped, accepted: sdc (a disk)"),
        ("wipe", "not looked for: DCO"),
    ]
    for wired, names in (({"accept_unwiped": ["sdc"]}, ["sda-hpa"]), ({}, ["sda-hpa", "sdc"])):
        with pytest.raises(Refused) as refused:
            wipes._left_out(Work(wired=wired), "shell", ["/dev/sda"])
        assert refused.value.remedy == f"or accept it: accept_unwiped: [{', '.join(names)}] in tftp_proxy_boards"
        assert (
            refused.value.what == f"a wipe does not reach {', '.join(str(one) for one in found if one.name in names)}"
        )


@pytest.fixture
def on_board(monkeypatch):
    """What is written down of a wipe."""
    kept = []
    monkeypatch.setattr(wipes.disk_records, "keep", lambda proxy, board, record: kept.append(record))
    monkeypatch.setattr(wipes, "_left_out", lambda *given: ([Area("a", "b", "c")], ["DCO"]))
    monkeypatch.setattr(wipes, "hardware", lambda shell, deadline: dict(seconds=deadline.seconds))
    monkeypatch.setattr(wipes, "in_words", lambda found: "64 CPUs")
    monkeypatch.setattr(wipes.wipe_disk, "in_words", lambda disk: f"{disk} wiped")
    return kept


def test_a_wipe_is_written_down(on_board, monkeypatch):
    """Lost: when, by whom, how, and what was left out: all that a proof is asked for later."""

    def wipe(shell, device, request, deadline, say):
        say(f"{device} {deadline.seconds:g}")
        return device

    monkeypatch.setattr(wipes.wipe_disk, "wipe_disk", wipe)
    work, begun = Work(), time.time()
    wipes._act(work, "shell", WipeRequest(inspect=True, limit=99))
    (record,) = on_board
    assert begun <= record.pop("time") <= time.time()
    assert record == dict(
        board=0,
        name="board0",
        actor="me",
        disks=["/dev/sda", "/dev/sdb"],
        asked="discard",
        key="asked for once",
        not_wiped=[dict(name="a", text="b", remedy="c")],
        not_looked_for=["DCO"],
    )
    assert work.hardware == dict(seconds=60.0)
    assert work.done[:2] == [("ram", "64 CPUs"), ("wipe", "/dev/sda, /dev/sdb: discard")]
    assert sorted(work.done[2:4]) == [("wipe", "/dev/sda 99"), ("wipe", "/dev/sdb 99")]
    assert work.done[4:] == [("wipe", "/dev/sda wiped; /dev/sdb wiped")]
    look = Work(needed=False)
    wipes._act(look, "shell", WipeRequest(inspect=True))
    wipes._act(look, "shell", WipeRequest())
    assert (look.done, len(on_board)) == ([("ram", "64 CPUs")], 1)


def test_a_wipe_of_which_one_disk_fails_proves_nothing(on_board, monkeypatch):
    """Lost: the disk that was not wiped, to the next tenant."""

    def wipe(shell, device, request, deadline, say):
        if device == "/dev/sdb":
            raise HeteroError("broken")
        return device

    monkeypatch.setattr(wipes.wipe_disk, "wipe_disk", wipe)
    work = Work()
    wipes._act(work, "shell", WipeRequest())
    assert (on_board, work.done[-1]) == ([], ("quarantine", "its disk cannot be wiped: broken"))


def test_boards_are_wiped_together(monkeypatch):
    """Lost: a board that is wiped twice at once, or without its lock; or a failed one that is booted all the same."""
    done = []

    class Board:
        def __init__(self, proxy, board, *more):
            self.board, self.more, self.over, self.lines, self.changed = (
                board,
                more,
                board == 2,
                [f"line {board}"],
                True,
            )
            self.record, self.failed, self.blame, self.error, self.evidence = (
                f"record {board}",
                board == 3,
                "b",
                "e",
                {},
            )

        is_read = True

        def read(self):
            done.append(("read", self.board))
            if self.board == 9:
                raise OSError(5, "Input/output error")

        def fail(self, blame, error):
            self.failed, self.blame, self.error, self.over, self.is_read = True, blame, str(error), True, False

        def end(self):
            done.append(("ended", self.board))

    @contextmanager
    def locked(works, phase, deadline):
        done.append(("locked", [work.board for work in works], phase, deadline.seconds))
        yield

    def plan(work, request, drivers, never_ran):
        done.append(("plan", work.board, drivers, never_ran))
        work.over = work.board == 1

    def ram(proxy, works, options, act, ended):
        done.append(("ram", [work.board for work in works]))
        for work in works:
            act(work, "shell")
            ended(work)

    monkeypatch.setattr(wipes, "Wipe", Board)
    monkeypatch.setattr(wipes, "locked", locked)
    monkeypatch.setattr(wipes, "_plan", plan)
    monkeypatch.setattr(wipes, "in_ram", ram)
    monkeypatch.setattr(wipes, "BootDrivers", lambda proxy, name: name)
    monkeypatch.setattr(wipes, "_take_out", lambda work: done.append(("out", work.board)))
    monkeypatch.setattr(wipes, "_act", lambda work, shell, request: done.append(("act", work.board, shell, request)))
    monkeypatch.setattr(wipes, "_settle", lambda work, request: done.append(("settled", work.board)))
    monkeypatch.setattr(wipes, "summary", lambda works, change: ([work.more[1:] for work in works], change.seconds))
    node = SimpleNamespace(board=lambda number: number, config=ProxyConfig())
    options = SimpleNamespace(check=False, instance="eve", created=(1.0,), limit=10.0, driver="fake", never_ran=True)
    wished = [("ended", 2), ("plan", 1, "fake", True), ("ended", 1), ("plan", 0, "fake", True)]
    inside = [("out", 0), ("ram", [0]), ("act", 0, "shell", USUAL), ("settled", 0), ("ended", 0)]
    more, seconds = wipes.wipe(node, [2, 1, 0], USUAL, options)  # pylint: disable=unbalanced-dict-unpacking
    assert done == [("locked", [2, 1, 0], "wipe", 86410.0), *wished, *inside]
    assert (more, list(seconds)) == ([("eve", (1.0,))] * 3, ["wipe"])
    with pytest.raises(BadInput, match="boards: names a board twice"):
        wipes.wipe(node, [0, 0], USUAL, options)
    done.clear()
    failed = []

    class Number(int):
        name = "its name"

    given = dict(change=None, wanted=None, created=(), changed=False, record="before")
    works = [SimpleNamespace(board=Number(board), lines=[], **given) for board in (0, 9, 3)]
    for work in works:
        work.fail = lambda blame, error, board=work.board: failed.append((board, blame, error))
    ended = []
    wipes.wipe_beside(node, works, USUAL, options, lambda work: ended.append((work.board, done[-1])))
    assert done[:3] == [("read", 0), ("read", 9), ("read", 3)]
    assert sorted(board for board, _last in ended) == [0, 3, 9]
    assert {(0, ("settled", 0)), (3, ("settled", 3))} < set(ended)
    (first, second) = failed
    assert (first[0], first[2].startswith("its name: cannot be read or written (Input/output error)")) == (9, True)
    assert second == (3, "b", "e")
    assert [(work.record, work.lines, work.changed) for work in works] == [
        ("record 0", ["line 0"], True),
        ("before", ["line 9"], True),
        ("record 3", ["line 3"], True),
    ]
