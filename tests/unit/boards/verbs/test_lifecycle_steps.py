# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What start, reboot and stop do around the boots themselves. Whole ones are in test_lifecycle.py."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.reboots import Rebooting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused

ERROR = HeteroError("does not answer", "board0", "look at it", screen="x")


@dataclass
class Record:
    """Of a board: what lifecycle.py changes of it in a dry run."""

    state: str
    claim: Any
    note: str = ""


class Work:
    """A board's work: `did` is what was done with the board, in order."""

    def __init__(self, number=0, state="power off", claim="jackie", note="", **more):
        self.did = []
        self.board = SimpleNamespace(id=number, name=f"board{number}")
        one = SimpleNamespace(instance=claim, board=number, boot_source=None) if claim else None
        self.record, self.began = Record(state, one, note), state
        store = SimpleNamespace(
            has_run=lambda claim: self.ran, out_of_use=lambda board: None, take_out=lambda board: False
        )
        store.is_older_than = lambda claim: False
        store.newest_told = lambda phase, text, board: None
        self.proxy = SimpleNamespace(store=store, config=SimpleNamespace(run_folder="/nowhere"))
        self.change, self.found = SimpleNamespace(check=False), None
        self.over = self.failed = self.as_rebuilt = self.ran = False
        self.blame = self.error = self.unproven = self.driver = self.at_end = None
        vars(self).update(more)

    claim = property(lambda self: self.record.claim)
    came_up_before = property(lambda self: self.ran)
    state = property(lambda self: self.record.state)
    instance = property(lambda self: self.claim and self.claim.instance)

    def look_if_over(self):
        if self.over and self.at_end:
            self.at_end()

    def let_go(self):
        self.did.append("let go")

    def move(self, state, note=""):
        self.did.append(("→", state, note))

    def fail(self, blame, error, **facts):
        self.did.append(("fails", blame, str(error), facts))
        self.failed = self.over = True

    def refuse_unproven(self):
        self.did.append("refused")
        self.over = True


def test_how_a_verb_is_done_where_nobody_says():
    """Lost: what the modules' documentation says of their defaults."""
    assert vars(Options()) == dict(
        driver="auto",
        kernel_source="auto",
        timeout=300.0,
        retries=1,
        wait=True,
        check=False,
        image=None,
        instance=None,
        created=(),
        boot_source=None,
        keep=False,
        ends=False,
        never_ran=False,
        by_guess=False,
        only_looks=False,
        how="auto",
        soft_timeout=30.0,
        rebuilt=(),
    )


def test_how_long_a_verb_may_take():
    """Lost: a lock that is given up while its holder still works; or hours for who waits behind one that hangs."""
    limit = Options(timeout=100.0, retries=2, soft_timeout=7.0).limit
    assert 60 <= limit - 307 <= 300
    both = Options(timeout=100.0, retries=2, soft_timeout=7.0).limit_with_disk
    assert both == 2 * limit + disk_boot.LONGEST


@pytest.mark.parametrize(
    ("options", "ids", "error"),
    [
        (dict(timeout=1, retries=0), [1, 0], None),
        (dict(timeout=0.9), [0], "timeout is at least 1 s"),
        (dict(retries=-1), [0], "retries at least 0"),
        (dict(soft_timeout=0), [0], "soft_timeout"),
        ({}, [0, 1, 0], "names a board twice"),
    ],
)
def test_arguments_of_a_verb(monkeypatch, options, ids, error):
    """Lost: a verb that waits for nothing, or holds one board's lock twice; or descriptors for a thousand boards."""
    rooms = []
    monkeypatch.setattr(lifecycle, "make_room", rooms.append)
    proxy = SimpleNamespace(board=lambda number: SimpleNamespace(id=number, name=f"board{number}"))
    options = Options(instance="jackie", created=(1.0,), check=True, **options)
    if error:
        with pytest.raises(BadInput, match=error):
            lifecycle.works_of(proxy, ids, options)
        return
    works, change = lifecycle.works_of(proxy, ids, options)
    assert rooms == [len(ids)]
    assert [(work.board.id, work.wanted, work.created) for work in works] == [
        (1, "jackie", (1.0,)),
        (0, "jackie", (1.0,)),
    ]
    assert change.check is True
    assert all(work.change is change for work in works)


@pytest.mark.parametrize("over", [False, True])
def test_a_board_without_a_driver_fails_by_itself(over):
    """Lost: the other boards of the call, for one that is wired as nobody knows."""

    def of(board):
        if board.id:
            raise ERROR
        return "its driver"

    for number, driver, did in ((0, "its driver", []), (1, None, [("fails", None, str(ERROR), {"screen": "x"})])):
        work = Work(number, over=over)
        lifecycle._name_driver(SimpleNamespace(of=of), work)
        assert (work.driver, work.did) == ((None, []) if over else (driver, did))


@pytest.mark.parametrize("claimed", [True, False])
def test_a_dry_run_takes_a_board_as_rebuilt(monkeypatch, claimed):
    """Lost: a dry run of a rebuild that says of a board that it runs already."""
    monkeypatch.setattr(lifecycle, "rebuilt_claim", lambda claim, image: (claim.instance, image))
    work = Work(state="running", claim="jackie" if claimed else None)
    lifecycle._take_as_rebuilt(work, "demo")
    assert (work.state, work.claim) == ("shutting down", ("jackie", "demo") if claimed else None)
    assert work.as_rebuilt is True


# ---- before its power


@pytest.mark.parametrize(
    ("state", "note", "blame", "said"),
    [
        ("error", "it smells", "board", ["is out of use: it smells", "stop_instance -e instance=jackie"]),
        ("error", "", "board", ["is out of use: in error", "terminate_instance -e instance=jackie"]),
        ("maintenance", "its fan", None, ["is in maintenance: its fan", "maintenance -e node=board0 -e state=off"]),
        ("maintenance", "", None, ["is in maintenance: end its maintenance first"]),
    ],
)
def test_a_board_out_of_use_stays_out(monkeypatch, state, note, blame, said):
    """Lost: the hand of who works at the board; or how it comes back into use."""
    monkeypatch.setattr(lifecycle, "ensure_entry", lambda *given: pytest.fail("written"))
    work = Work(state=state, note=note)
    lifecycle._make_ready(work, Options())
    ((what, whose, text, _facts),) = work.did
    assert (what, whose) == ("fails", blame)
    assert all(words in text for words in said), text


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("claim", "has", "asked", "refused"),
    [
        ("jackie", None, None, False),
        ("jackie", "disk", None, False),
        ("jackie", "disk", "disk", False),
        ("jackie", None, "nfs", False),
        ("jackie", "disk", "nfs", True),
        ("jackie", None, "disk", True),
        (None, None, "disk", False),
        (None, None, None, False),
    ],
)
def test_a_board_is_made_ready(monkeypatch, check, claim, has, asked, refused):
    """Lost: a tenant's root on its disk, by a start from NFS; or the proof that its disks are wiped outlives it."""
    done = []
    monkeypatch.setattr(lifecycle, "ensure_entry", lambda work, image: done.append(("entry", image)))
    monkeypatch.setattr(lifecycle, "withdraw", lambda proxy, board, name: done.append(("withdraw", board.id, name)))
    work = Work(claim=claim)
    if claim:
        work.claim.boot_source = has
    lifecycle._make_ready(work, Options(check=check, boot_source=asked, image="demo"))
    if refused:
        assert done == []
        ((what, whose, text, facts),) = work.did
        assert (what, whose, facts) == ("fails", None, {})
        assert f"jackie has boot source {has or 'nfs'}, not {asked}" in text
    else:
        assert done == [("entry", "demo"), *[("withdraw", 0, claim)] * (not check)]
        assert work.did == []


def test_a_board_that_cannot_be_made_ready_fails_with_what_is_known(monkeypatch):
    def fails(*given):
        raise ERROR

    monkeypatch.setattr(lifecycle, "ensure_entry", fails)
    work = Work()
    lifecycle._make_ready(work, Options())
    assert work.did == [("fails", None, str(ERROR), {"screen": "x"})]


@pytest.mark.parametrize(
    ("claim", "borne_out", "shown", "root", "unproven", "refused"),
    [
        (None, False, None, True, False, False),
        ("jackie", True, None, True, False, False),
        ("jackie", False, presence.OWN_KEY, True, False, False),
        ("jackie", False, presence.ALIVE, False, True, False),
        ("jackie", False, presence.SILENT, True, True, True),
    ],
)
def test_a_claim_that_only_the_database_has(monkeypatch, claim, borne_out, shown, root, unproven, refused):
    """Lost: the board of somebody else, by a database that was put back."""
    monkeypatch.setattr(lifecycle, "is_borne_out", lambda *given: borne_out)
    monkeypatch.setattr(presence, "shown", lambda work: shown)
    monkeypatch.setattr(lifecycle, "has_root", lambda *given: root)
    monkeypatch.setattr(lifecycle, "unproven", lambda board, claim: "unproven")
    work = Work(claim=claim)
    lifecycle._look_whose(work)
    assert work.unproven == ("unproven" if unproven else None)
    assert work.did == (["refused"] if refused else [])


# ---- stop


@pytest.mark.parametrize("never_ran", [False, True])
@pytest.mark.parametrize("ran", [False, True])
def test_which_boards_are_switched_off(monkeypatch, never_ran, ran):
    """Lost: the power of who works at a board in maintenance; or an instance that ran, by who takes a request back."""
    got, looked = [], []

    def must_never_have_run(proxy, board, claim):
        if ran:
            raise Refused("ran here", board.name, "leave it")

    class Stopping:
        def __init__(self, proxy, works, options):
            got.append([work.board.id for work in works])

        def run(self):
            got.append("run")

    monkeypatch.setattr(lifecycle, "BootDrivers", lambda proxy, driver: SimpleNamespace(of=lambda board: driver))
    monkeypatch.setattr(lifecycle, "Stopping", Stopping)
    monkeypatch.setattr(lifecycle, "must_never_have_run", must_never_have_run)
    monkeypatch.setattr(lifecycle, "_look_whose", lambda work: looked.append(work.board.id))
    works = [Work(0), Work(1, state="maintenance"), Work(2, over=True), Work(3, state="maintenance", over=True)]
    lifecycle.switch_off(None, works, Options(never_ran=never_ran, driver="fake"))
    ends = never_ran and ran
    assert got == [[] if ends else [0], "run"]
    assert looked == ([] if ends else [0])
    assert [work.driver for work in works] == ["fake", "fake", None, None]
    assert [what[:2] for what in works[0].did] == ([("fails", "instance")] if ends else [])
    assert "is in maintenance: end its maintenance first" in works[1].did[0][2]
    assert "node=board1 -e state=off" in works[1].did[0][2]
    assert (works[2].did, works[3].did) == ([], [])


@pytest.mark.parametrize(
    ("keep", "failed", "claim", "state", "kept"),
    [
        (True, False, "jackie", "shutting down", True),
        (False, False, "jackie", "shutting down", False),
        (True, True, "jackie", "shutting down", False),
        (True, False, None, "shutting down", False),
        (True, False, "jackie", "running", False),
    ],
)
def test_what_is_stopped_may_be_started_again(monkeypatch, keep, failed, claim, state, kept):
    """Lost: an instance that was stopped for the night; or one that is ending comes up again."""
    monkeypatch.setattr(lifecycle, "BootDrivers", lambda *given: SimpleNamespace(of=lambda board: None))
    monkeypatch.setattr(lifecycle, "Stopping", lambda *given: SimpleNamespace(run=lambda: None))
    monkeypatch.setattr(lifecycle, "_look_whose", lambda work: None)
    monkeypatch.setattr(lifecycle, "_must_start_again", lambda work: None)
    work = Work(state=state, claim=claim, failed=failed)
    lifecycle.switch_off(None, [work], Options(keep=keep))
    assert work.did == ([("→", "power off", "stopped")] if kept else [])


# ---- start and reboot


@pytest.fixture
def brought_up(monkeypatch):
    """`_bring_up` of works, whose steps are told."""

    def make(way, works, **options):
        did, options = [], Options(kernel_source="flash", driver="fake", image="demo", **options)

        @contextmanager
        def step(name):
            did.append(name)
            yield

        @contextmanager
        def locked(works, verb, deadline):
            did.append((verb, deadline.seconds == options.limit))
            yield

        def told(name):
            return lambda work, *given: did.append((name, work.board.id, *given[:1]))

        monkeypatch.setattr(lifecycle, "works_of", lambda *given: (works, SimpleNamespace(step=step)))
        monkeypatch.setattr(lifecycle, "locked", locked)
        monkeypatch.setattr(lifecycle, "BootDrivers", lambda *given: SimpleNamespace(of=lambda board: given[1:]))
        monkeypatch.setattr(lifecycle, "_take_as_rebuilt", told("rebuilt"))
        monkeypatch.setattr(lifecycle, "_look_whose", told("whose"))
        monkeypatch.setattr(lifecycle, "note_if_used", told("used"))
        monkeypatch.setattr(lifecycle, "_make_ready", lambda work, options: did.append(("ready", work.board.id)))
        for name in ("remember", "doubt"):
            monkeypatch.setattr(disk_boot, name, lambda works, name=name: did.append((name, len(works))))
        monkeypatch.setattr(disk_boot, "lay", lambda proxy, works, options: did.append(("lay", len(works))))
        monkeypatch.setattr(lifecycle, "_keep_what_ran", lambda works: did.append(("keep", len(works))))
        monkeypatch.setattr(lifecycle, "summary", lambda works, change: "the result")
        monkeypatch.setattr(way, "__init__", lambda self, proxy, works, options: did.append(("boots", len(works))))

        def run(self):
            did.append("run")
            for work in works:
                work.over = True

        monkeypatch.setattr(way, "run", run)
        verb = lifecycle.start if way is Starting else lifecycle.reboot
        assert verb(None, [], options) == "the result"
        return did

    return make


@pytest.mark.parametrize(
    ("way", "options", "first"),
    [
        (Starting, {}, [("whose", 0)]),
        (Starting, {"how": "soft"}, [("whose", 0)]),
        # a start looks itself whether the root was used meanwhile
        (Rebooting, {"how": "auto"}, [("used", 0), ("whose", 0)]),
        # by ssh the board tells whose it is
        (Rebooting, {"how": "soft"}, [("used", 0)]),
        (Starting, {"check": True, "rebuilt": (0,)}, [("rebuilt", 0, "demo")]),
        (Starting, {"check": True, "rebuilt": (5,)}, [("whose", 0)]),
        (Starting, {"rebuilt": (0,)}, [("whose", 0)]),
    ],
)
def test_the_steps_of_a_boot_come_in_their_order(brought_up, way, options, first):
    """Lost: a board gets power before its entry lies there, or before it is known whose it is."""
    works = [Work(0), Work(1, over=True)]
    verb = "start" if way is Starting else "reboot"
    assert brought_up(way, works, **options) == [
        (verb, True),
        *first,
        "boot entries",
        ("ready", 0),
        "disk",
        ("lay", 1),
        "boot",
        ("boots", 1),
        "run",
        ("remember", 1),
        ("doubt", 1),
        ("keep", 2),
    ]
    assert [work.driver for work in works] == [("fake", "flash"), None]
    assert [work.did for work in works] == [["let go"], ["let go"]]


@pytest.mark.parametrize(
    ("blame", "ran", "failed", "others_ran", "new", "said"),
    [
        ("image", True, True, False, "instance", "jackie ran here before"),
        ("board", True, True, False, "instance", "jackie ran here before"),
        ("proxy", True, True, False, "proxy", None),
        ("image", False, True, True, "instance", "nothing is given back, for eve of the same request ran before"),
        ("board", False, True, True, "board", None),
        ("image", False, True, False, "image", None),
        ("image", True, False, False, "image", None),
        ("image", False, False, True, "image", None),
    ],
)
def test_what_ran_is_not_taken_back(blame, ran, failed, others_ran, new, said):
    """Lost: a tenant's root, for an image or a board that fails today."""
    one = Work(0, blame=blame, ran=ran, failed=failed, error="it stalled")
    other = Work(1, claim="eve", ran=others_ran)
    lifecycle._keep_what_ran([one, other, Work(2, claim=None)])
    assert one.blame == new
    if said:
        assert one.error.startswith(f"it stalled; {said}")
        assert "jackie" in one.error
    else:
        assert one.error == "it stalled"
    assert (other.blame, other.error) == (None, None)
