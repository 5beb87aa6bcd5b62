# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of playbook migrate_instance that is held up before one of its steps, while an operator takes the move back, or
another run goes on with it; and a host's database that is put back from a copy of before meanwhile. If these fail, both
roots of a guest are removed, or it runs twice.

Tests compute_host/departures.py, compute_host/arrivals.py, compute_host/move_step.py, plugin_utils/move_steps.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.turns import DAY, in_turns
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import MARK, Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import Copied
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_two_runs_of_a_move import CutOff, cut_off
from ansible_collections.hetero.compute.tests.unit.instances.played_moves import alone_in
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points

__all__ = ["two"]

#: Seconds for which a run is held up at most, and another one is waited for.
PATIENCE = 120.0
SAID = (HeteroError, Stop)


class Run(Copied):
    """A run of the playbook, of whose steps another object is told.

    :param turns: its methods `before` and `after` are called with the run and the step's word.
    """

    def __init__(self, two, turns, back=False, breaks=""):
        super().__init__(two)
        self.turns, self.back, self.breaks, self.said = turns, back, breaks, None

    def step(self, node, word, claim, *given, **more):
        if word == self.breaks:
            raise HeteroError("broke off", "disk", "")
        return self._told(word, lambda: super(Run, self).step(node, word, claim, *given, **more))

    def verb(self, node, verb, claim, **more):
        return self._told("start", lambda: super(Run, self).verb(node, verb, claim, **more))

    def _told(self, word, work):
        self.turns.before(self, word)
        try:
            return work()
        finally:
            self.turns.after(self, word)

    def whole(self):
        try:
            self.migrate(self.back)
        except SAID as error:
            self.said = str(error)

    def answers(self):
        found = super().answers()
        self.turns.after(self, "look")
        return found


class Turns:
    """A run that is held up before a step, and goes on, to its end, after a step of another one.

    :param first: {how it is begun} of the run that is held up, and `held` its step.
    :param at: the step of the other run.
    :param restored: "" for none; or a host, and when its database is put back to what it was a step before: as the
        first run is held up, or as it goes on.
    """

    def __init__(self, two, first, held, second, at, restored=""):
        self.two, self.held, self.at = two, held, at
        self.host, _blank, self.when = restored.partition(" ")
        self.guests, self.first, self.second = Copied(two), Run(two, self, **first), Run(two, self, **second)
        self.reached, self.goes_on, self.ended = Event(), Event(), Event()
        self.copies, self.told = {}, []

    def before(self, run, word):
        if run is self.first and word == self.held and not self.reached.is_set():
            self._put_back("held")
            self.reached.set()
            assert self.goes_on.wait(PATIENCE), f"nobody had it go on before {word}"
        self.copies = {name: run.copy_of(name) for name in run.sites}

    def after(self, run, word):
        self.told.append(f"{'A' if run is self.first else 'B'} {word}")
        self.must_hold()
        if run is self.second and word == self.at and not self.goes_on.is_set():
            self._put_back("goes on")
            self._let_go()

    def _let_go(self):
        self.goes_on.set()
        assert self.ended.wait(PATIENCE), "the run that was held up does not end"

    def _put_back(self, when):
        if self.when == when:
            self.guests.put_back(self.host, self.copies[self.host])
            self.told.append(f"{self.host} is put back")

    def play(self):
        """Both runs."""
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self._first)
            try:
                assert self.reached.wait(PATIENCE), f"neither held up nor ended: {self.why}"
                assert not self.ended.is_set(), f"{self.held} was never reached: {self.why}"
                self.second.whole()
                self._let_go()
            finally:
                self.goes_on.set()
                first.result(PATIENCE)

    def _first(self):
        try:
            self.first.whole()
        finally:
            self.ended.set()
            self.reached.set()

    @property
    def why(self):
        return f"{', '.join(self.told)}; A: {self.first.said}; B: {self.second.said}"

    def must_hold(self):
        """A root is left, and one host alone may start it."""
        self.guests.must_hold(self.why)
        roots, may = [], []
        for name, site in self.guests.sites.items():
            with self.guests.at(site) as host:
                claim, kept = host.store.claim_of("win"), host.store.kept("win")
                state = host.store.as_recorded(claim, lambda _claim: True, dry=True).state if claim else None
            made = [one for one in (claim, kept) if one is not None and one.container is not None]
            if made and self._is_whole(name):
                roots.append(name)
                may += [name] if state not in (None, "leaving", "arriving", "ending") else []
        assert roots, f"no root is left: {self.why}"
        assert len(may) < 2, f"{may} may start it: {self.why}"

    def _is_whole(self, name):
        try:
            with open(self.guests.disk(name), "rb") as file:
                file.seek(512)
                return file.read(len(MARK)) == MARK
        except FileNotFoundError:
            return False


BACK = dict(back=True)


def test_a_removal_of_the_former_root_that_was_held_up_is_none_once_that_is_recalled(two):
    """Lost: both roots: the new host's database is put back from before the former root was to go, an operator takes
    the move back, and the run before goes on, with its last step.
    """
    guests = Copied(two)
    guests.provide()
    turns = Turns(two, {}, "gone", BACK, "given_up", "kvm2 held")
    turns.play()
    turns.guests.must_run(turns.why)
    assert guests.running() == ["kvm1"]
    assert "is moved by another run since" in turns.first.said, turns.why
    assert turns.second.said is None


def test_of_two_runs_that_go_on_beside_each_other_both_end_well(two):
    """Lost: the way in, which the play hands over last, to who typed the command twice."""
    guests = Copied(two)
    guests.provide()
    turns = Turns(two, {}, "settled", {}, "settled")
    turns.play()
    assert (turns.first.said, turns.second.said) == (None, None), turns.why
    guests.must_run(turns.why)


def test_a_former_root_whose_removal_has_begun_is_not_recalled(two, monkeypatch):
    """Lost: both roots: what is on the other host is given up for one of which half is removed."""
    guests = Copied(two)
    guests.provide()
    claim = guests.started()
    run = guests.claim()["mover"]
    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "remove", cut_off)
        with pytest.raises(CutOff):
            guests.leave(dict(leaves="kvm1", arrives="kvm2", came_by=run, settles="r2"), claim, claim["host_key"])
    with pytest.raises(HeteroError, match="its former root is being removed here: it does not come back"):
        guests.step("kvm1", "recalled", claim, seen=run, run="r3")
    guests.migrate()
    guests.must_run("its removal went on")
    assert guests.running() == ["kvm2"]


class Killed(Run):
    """A run that is killed after a step."""

    def __init__(self, two, after):
        super().__init__(two, self, back=True)
        self.last, self.told = after, []

    def before(self, _run, word):
        self.told.append(word)

    def after(self, _run, word):
        if word == self.last:
            raise CutOff


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("after", ["recalled", "given_up", "back"])
def test_a_way_back_that_is_killed_loses_nothing(two, after, back):
    """Lost: the root, or the way to either of the two, where the play dies on its way back; or what the tenant wrote
    on the new host, where the operator thinks better of it before that is given up.
    """
    guests = Copied(two)
    guests.provide()
    guests.started()
    killed = Killed(two, after)
    with pytest.raises(CutOff):
        killed.migrate(back=True)
    assert killed.told[-1] == after
    guests.must_hold(after)
    if after == "back":  # it is its former host's alone, and off, and neither goes back nor on
        assert guests.states() == {"kvm1": "stopped"}
        with pytest.raises(Stop, match="win does not move, so there is nothing to take back"):
            guests.migrate(back=True)
        guests.verb("kvm1", lifecycle.running, guests.claim())
    else:
        guests.migrate(back=back)
    guests.must_run(after)
    stays = back or after == "back"
    assert guests.running() == ["kvm1" if stays else "kvm2"]


class Swept(Guests):
    """The way back, killed before each of its writes."""

    stays = False

    def provide(self):
        """Have it run on kvm2, with its former root on kvm1."""
        super().provide()
        if list(self.states()) == ["kvm2"]:
            self.migrate()
        if list(self.states()) == ["kvm1"]:
            self.stays = True
            self.migrate()
            self.stays = False
        assert self.states() == {"kvm1": "leaving", "kvm2": "running"}

    def leave(self, *given):
        if not self.stays:
            super().leave(*given)


def killed_on_its_way_back(two, chosen):
    """How many points a way back has: it is killed at those that `chosen(count)` gives, then taken back, or goes on."""
    guests, points = Swept(two), Points()
    guests.provide()
    points.reset(0)
    said = alone_in(points, lambda: guests.migrate(back=True) or {})
    assert said == {}, said
    count = points.count
    for number in chosen(count):
        guests.provide()
        points.reset(number)
        said = alone_in(points, lambda: guests.migrate(back=True) or {})
        assert said is None, said
        why = f"killed at {number} of {count}, before {points.killed!r}: {guests.states()}"
        guests.must_hold(why)
        try:
            guests.follow("back" if number % 2 else "again", why)
        except SAID as error:
            raise AssertionError(f"{why}: {error}") from error
    return count


ALL, ON = "look arriving leaving taken start settled gone", "look start settled gone"
WAY = "look recalled given_up back start"
#: {how a run is begun, and the step before which it is held up: (the steps of one that takes the move back meanwhile,
#: those of one that goes on with it)}.
HELD = {
    ("moves", "arriving"): ("", ALL),
    ("moves", "leaving"): ("look recalled given_up back", ALL),
    ("moves", "taken"): (WAY, ALL),
    ("moves", "start"): (WAY, "look arriving leaving start settled gone"),
    ("moves", "settled"): (WAY, ON),
    ("moves", "gone"): ("look recalled given_up", ON),
    ("fails", "given_up"): (WAY, ALL),
    ("fails", "back"): ("look recalled back start", ALL),
    ("fails", "start"): ("", ALL),
    ("back", "recalled"): (WAY, ON),
    ("back", "given_up"): (WAY, ON),
    ("back", "back"): ("look recalled back start", ALL),
    ("back", "start"): ("", ALL),
}
BEGUN = {"moves": {}, "fails": dict(breaks="digested"), "back": BACK}
#: Which database is put back, and when; and the steps that this may let do what they are not to do.
PUT_BACK = [f"{host} {when}" for host in ("kvm1", "kvm2") for when in ("held", "goes on")]
REMOVES = [("moves", "settled"), ("moves", "gone"), ("back", "given_up"), ("back", "back")]
CASES = [
    (*held, other, at, restored)
    for held, both in HELD.items()
    for other, words in zip(("back", "moves"), both)
    for at in words.split()
    for restored in ("", *(PUT_BACK if held in REMOVES else ()))
]


@pytest.mark.parametrize("case", in_turns(CASES, 151), ids=" ".join)
def test_no_two_runs_remove_both_roots_or_start_both(two, case):
    """Lost: an instance's only root; or one life, to the former root that runs beside the new one."""
    how, held, other, at, restored = case
    guests = Copied(two)
    guests.provide()
    if how == "back":
        guests.started()
    turns = Turns(two, BEGUN[how], held, BEGUN[other], at, restored)
    turns.play()
    turns.must_hold()
    if not restored:
        assert f"B {at}" in turns.told, turns.why
        guests.follow("again", turns.why)
        return
    guests.reconcile()
    for back in (False, True):
        with suppress(*SAID):
            guests.migrate(back)
        turns.must_hold()


def test_killed_at_a_sample_of_its_writes_a_way_back_ends_well(two):
    """Lost: an instance whose controller dies as it is taken back."""
    assert killed_on_its_way_back(two, lambda count: [1 + DAY % count]) > 1


@pytest.mark.long
def test_killed_at_each_of_its_writes_a_way_back_ends_well(two):
    """Lost: the same, at a point that the sample did not try."""
    assert killed_on_its_way_back(two, lambda count: range(1, count + 1)) > 1
