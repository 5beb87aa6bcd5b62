# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that moves between two hosts of a test, by the steps that playbook migrate_instance has taken."""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import arrivals
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.move_step import Asked, Step
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.verb_options import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.host_moves import STEPS


class Mover:
    """Takes the steps, each on its host as a module of its own does.

    :param at: a context manager that gives a host, opened: `with at(site) as host`.
    """

    def __init__(self, at, old, new, name):
        self.at, self.old, self.new, self.name = at, old, new, name
        self.created = self.claim(old).created if self.claim(old) else self.claim(new).created
        self.run = "r1"  # of the playbook, which looks now
        claims = {"arriving": self.claim(new), "settled": self.claim(new)}
        claims.update(leaving=self.claim(old), recalled=self.claim(old))
        self.seen = {step: claim.mover or "" for step, claim in claims.items() if claim}

    def claim(self, site):
        with self.at(site) as host:
            return host.store.claim_of(self.name)

    def state(self, site):
        claim = self.claim(site)
        return claim and claim.state

    def step(self, site, word, check=False, **more):
        other = "new" if site is self.old else "old"
        if word in ("gone", "given_up"):
            claim = self.claim(self.new if site is self.old else self.old)
            of_it = dict(host_key=claim.host_key, departure=claim.departure) if claim else {}
            more = dict(of_it, **more)
        by = dict(run=self.run, seen=self.seen.get(word, ""))
        asked = Asked(self.name, self.created, **dict(dict(by, other=other, timeout=60.0), **more))
        with self.at(site) as host:
            told = STEPS[word](Step(host, asked, Change(check)))
        return json.loads(json.dumps(told))  # as Ansible passes it on

    def copied(self):
        """All but the start: the root is there, compared."""
        came = self.step(self.old, "described")["came"]
        self.step(self.new, "arriving", came=came)
        came = self.step(self.old, "leaving")["came"]
        begun = self.step(self.new, "begun", came=came)
        if begun["taken"]:
            return
        for file, number in self.step(self.old, "planned", has=begun["has"])["todo"]:
            piece = self.step(self.old, "read", piece=dict(file=file, number=number))["piece"]
            self.step(self.new, "written", piece=piece)
        digests = self.step(self.old, "digested")["digests"]
        self.step(self.new, "taken", came=came, digests=digests)

    def started(self):
        with self.at(self.new) as host:
            done = arrivals.migrated(host, self.name, Options(timeout=60.0, created=(self.created,)), Change())
        assert not done.get("failed"), done["msg"]
        return done

    def all(self):
        """The whole move, which goes on wherever an earlier one was cut off."""
        states = self.state(self.old), self.state(self.new)
        if states[1] in (None, "arriving"):
            self.copied()
        self.started()
        self.step(self.new, "described")  # it could move on
        self.step(self.new, "settled")
        self.step(self.old, "gone")
