# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move, and another verb that looks where it is before one step of it, and does its work before the same one
or a later one. If these fail, a guest runs on, and is paid for, of which its tenant was told that it has ended; its
lease is another than he was told; or it runs twice.

Tests compute_host/lifecycle.py, compute_host/told_of_ends.py, compute_host/departures.py, compute_host/arrivals.py,
plugin_utils/handover.py, plugin_utils/request_steps.py.
"""

from __future__ import annotations

import time
from itertools import combinations_with_replacement

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils import handover, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two

__all__ = ["two"]

#: The steps of a move, and "" for its end.
STEPS = ("arriving", "leaving", "begun", "written", "digested", "taken", "migrated", "settled", "gone", "")
VERBS = {"terminate": lifecycle.absent, "stop": lifecycle.stopped, "extend": lifecycle.extended}
CASES = [(verb, *points) for points in combinations_with_replacement(STEPS, 2) for verb in VERBS]
HOURS = 50


class Beside(Guests):
    """A move, and a verb that looks and works before two of its steps."""

    def __init__(self, two, verb, looks, works):
        super().__init__(two)
        self.name, self.looks, self.works, self.plan, self.said = verb, looks, works, None, None

    def comes(self, step):
        if self.plan is None and step == self.looks:
            to = None if self.name == "terminate" else self.name
            try:
                self.plan = request_steps.find(self.asked, self.answers(), [], to=to)
            except Stop as stop:
                self.plan, self.said = {}, str(stop)
        if self.plan and self.said is None and step == self.works:
            self.said = self.work_beside()

    def work_beside(self):
        """What the verb's playbook says where it fails; "" where all was done."""
        more, said = dict(lease_hours=HOURS) if self.name == "extend" else {}, {}
        try:
            for part in self.plan["parts"]:
                said[part["item"]] = super().verb(part["item"], VERBS[self.name], part["claims"][0], **more)
        except HeteroError as error:
            return str(error)
        return "; ".join(handover.moved_on(self.plan["parts"], said))

    def hours(self):
        """Until the end of its lease."""
        (claim,) = [claim for answer in self.answers() for claim in answer["claims"]]
        return round((claim["expires"] - time.time()) / 3600)


@pytest.mark.parametrize("case", in_turns(CASES, 29), ids="-".join)
def test_a_verb_beside_a_move_does_what_it_says(two, case):
    """Lost: money, to a guest that was said to be gone; work, to a lease that was said to be longer; or one life."""
    verb, looks, works = case
    guests = Beside(two, verb, looks, works)
    guests.provide()
    try:
        guests.migrate()
        moved = ""
    except HeteroError as error:
        moved = str(error)
    guests.comes("")
    why = f"it said {guests.said!r}, and the move {moved!r}: {guests.states()}"
    assert guests.said is not None, "it was never there"
    guests.must_hold(why)
    if verb == "terminate":
        if guests.said:
            assert "win moved to kvm2 while it was ended on kvm1, and may run there: run this again" in guests.said
            guests.terminate()
        guests.must_be_gone(why)
        return
    assert "moves " in guests.said or "no such instance" in guests.said or not guests.said, why
    assert moved == "", "what was stopped, or is lent longer, moves all the same"
    if (verb, looks) == ("stop", ""):
        assert guests.running() == [], why
        guests.tried()
    guests.must_run(why)
    assert guests.hours() == (HOURS if verb == "extend" and not guests.said else 5), why


def test_who_ends_a_half_whose_other_host_is_left_out_is_told_nothing_new(two):
    """Lost: time, to a failure that says what he has typed."""
    guests = Beside(two, "terminate", "taken", "taken")
    guests.provide()

    def cut_off(step):
        if step == "taken":
            raise KeyboardInterrupt

    guests.comes = cut_off
    with pytest.raises(KeyboardInterrupt):
        guests.migrate()
    halves = [answer for answer in guests.answers() if answer["item"] == "kvm1"]
    guests.plan = request_steps.find(guests.asked, halves, ["kvm2"])
    assert guests.work_beside() == ""
    assert guests.states() == {"kvm2": "arriving"}
