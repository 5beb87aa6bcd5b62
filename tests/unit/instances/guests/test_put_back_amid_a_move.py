# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move that is killed before one of its steps, when the database of one of its hosts, or of both, is put back
from a copy of before another step; then a verb. If these fail, the guest runs twice, or its only disk is removed.

Tests compute_host/departures.py, compute_host/arrivals.py, claims/host/store.py, site/moves.py, site/owners.py.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, cycle

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils import handover, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import MARK
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import Copied
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_two_runs_of_a_move import CutOff

__all__ = ["two"]

#: The steps of a move, and "" for its end.
STEPS = ("described", "arriving", "leaving", "begun", "written", "digested", "taken", "migrated", "settled", "gone", "")
VERBS = {
    "start": (lifecycle.running, {}),
    "extend": (lifecycle.extended, dict(lease_hours=50)),
    "rebuild": (lifecycle.rebuilt, dict(fresh=True)),
    "terminate": (lifecycle.absent, {}),
}
NEXT = (*VERBS, "again", "back")
PAIRS = [(node, *steps) for node in ("kvm1", "kvm2", "both") for steps in combinations(STEPS, 2)]
#: Each verb in turn, and after the last step, when all is over but for what was put back, each of them.
CASES = [(*pair, what) for pair, what in zip(PAIRS, cycle(NEXT))]
CASES += [(*pair, what) for pair in PAIRS for what in NEXT if pair[-1] == "" and (*pair, what) not in CASES]


class Forgetful(Copied):
    """A move that is killed before a step, when a database is put back from before an earlier one."""

    def __init__(self, two, node, copied, killed):
        super().__init__(two)
        self.nodes = ("kvm1", "kvm2") if node == "both" else (node,)
        self.copied_at, self.killed_at, self.copies = copied, killed, None

    def comes(self, step):
        if step == self.copied_at and self.copies is None:
            self.copies = {name: self.copy_of(name) for name in self.nodes}
        if step == self.killed_at:
            self.killed_at = None
            for name, copy in self.copies.items():
                self.put_back(name, copy)
            raise CutOff

    def move(self):
        self.migrate()
        self.comes("")

    def do(self, what):
        """What a person does; what his playbook says, "" where it went well."""
        try:
            if what in ("again", "back"):
                self.migrate(what == "back")
            elif what == "reconcile":
                self.reconcile()
            else:
                return self.do_verb(what)
        except (HeteroError, Stop) as error:
            return str(error)
        return ""

    def do_verb(self, name):
        verb, more = VERBS[name]
        plan, said = request_steps.find(self.asked, self.answers(), [], to=None if name == "terminate" else name), {}
        for part in plan["parts"]:
            said[part["item"]] = self.verb(part["item"], verb, part["claims"][0], **more)
        return "; ".join(handover.moved_on(plan["parts"], said))

    def disks(self):
        """The hosts on which its data lie."""
        found = []
        for name in self.sites:
            with suppress(FileNotFoundError), open(self.disk(name), "rb") as file:
                file.seek(512)
                found += [name] if file.read(len(MARK)) == MARK else []
        return found


@pytest.mark.parametrize("case", in_turns(CASES, 47), ids="-".join)
def test_a_verb_after_a_database_was_put_back_amid_a_move(two, case):
    """Lost: one life; or the only disk, of which nobody has said that it may go."""
    node, copied, killed, what = case
    guests = Forgetful(two, node, copied, killed)
    guests.provide()
    with pytest.raises(CutOff):
        guests.move()
    was, runs = guests.states(), guests.running()
    said = guests.do(what)
    why = f"{was}, {runs} on; it said {said!r}: {guests.states()}, {guests.running()} on"
    guests.must_hold(why)
    if what == "terminate" and not said:
        assert (guests.running(), guests.disks()) == ([], []), why
        return
    # a part of an end that was refused on one host is done on the other
    may_go = what == "terminate" or (what == "rebuild" and not said)
    assert may_go or guests.disks(), why
    for turn in ("reconcile", "again", "again"):
        after = guests.do(turn)
        why += f"; then {turn}: {after!r}: {guests.states()}, {guests.running()} on"
        guests.must_hold(why)
        assert may_go or guests.disks(), why
