# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks migrate_instance and terminate_instance as they go over two hosts of a test, in this process: their own
steps decide (request_steps.py, move_steps.py), and each module is a call of its own. No Ansible is begun for them.
"""

from __future__ import annotations

import json
import os
import stat
import traceback
from functools import partial
from itertools import cycle

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import arrivals, lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.move_step import Asked, Step
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.verb_options import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.host_moves import STEPS
from ansible_collections.hetero.compute.plugins.plugin_utils import move_steps, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points

TIMEOUT = 60.0
#: What is done after a move that was cut off.
NEXT = ("again", "back", "end", "reconcile", "lease")
#: Names of files that are a tenant's.
ROOTS = ("root.ext4", "disk.raw")


class Played:
    """The two playbooks for one instance of two hosts.

    :param at: a context manager that gives a host, opened: `with at(site) as host`.
    :param sites: {name in the inventory: site}.
    """

    def __init__(self, at, sites, instance, owner, folder_of):
        self.at, self.sites, self.instance, self.owner, self.folder_of = at, sites, instance, owner, folder_of
        #: The run of the playbook.
        self.run = "r1"
        #: What step `leaving` said in the last copy.
        self.said_of_it = {}
        #: What runs a module: here, or in a process of its own.
        self.call = lambda work: work()

    @property
    def asked(self):
        return dict(instance=self.instance, owner=self.owner)

    def answers(self):
        found = []
        for name, site in self.sites.items():
            with self.at(site) as host:
                found.append(json.loads(json.dumps(dict(information(host), item=name, queue=[], reservations=[]))))
        return found

    def states(self):
        """{host: state of its claim}, of those that have one."""
        found = {}
        for name, site in self.sites.items():
            with self.at(site) as host:
                claim = host.store.claim_of(self.instance)
            if claim:
                found[name] = claim.state
        return found

    # ---- modules

    def comes(self, step):
        """What happens beside a move as it comes to a step; here nothing does."""

    def step(self, node, word, claim, check=False, **more):
        self.comes(word)
        other = next(name for name in self.sites if name != node)
        given = dict(owner=self.owner, run=self.run, other=other, timeout=TIMEOUT, soft_timeout=5.0)
        if word == "given_up" and not more:  # by a test, as where the former host has just said how it left
            with self.at(self.sites[other]) as host:
                left = host.store.claim_of(self.instance)
            given.update(departure=left.departure or "" if left else "")

        def work():
            asked = Asked(self.instance, claim["created"], **dict(given, **more))
            with self.at(self.sites[node]) as host:
                return json.loads(json.dumps(STEPS[word](Step(host, asked, Change(check)))))

        return self._said(node, word, self.call(work))

    def verb(self, node, verb, claim, **more):
        if verb is arrivals.migrated:
            self.comes("migrated")

        def work():
            options = Options(timeout=TIMEOUT, created=(claim["created"],), owner=self.owner, **more)
            with self.at(self.sites[node]) as host:
                return json.loads(json.dumps(verb(host, self.instance, options, Change(False)), default=str))

        return self._said(node, verb.__name__, self.call(work))

    @staticmethod
    def _said(node, word, said):
        if said is None:
            raise HeteroError("was killed", f"{word} on {node}", "")
        if said.get("broken"):
            raise AssertionError(said["msg"])
        if said.get("failed"):
            raise HeteroError(said["msg"], f"{word} on {node}", "")
        return said

    # ---- playbooks

    def migrate(self, back=False, without=()):
        """Playbook migrate_instance; raises HeteroError or Stop where it fails."""
        answers = [answer for answer in self.answers() if answer["item"] not in without]
        plan = request_steps.find(self.asked, answers, without, to="migrate")
        claim, moves, came = plan["parts"][0]["claims"][0], plan["moves"], {}
        if not (moves and (back or moves[0]["was_started"] or moves[0]["ended"])):
            came = self.step(plan["parts"][0]["item"], "described", claim, force=back)["came"]
        to = move_steps.target(self.asked, answers, plan, came, "", back)
        self.run = to["run"]
        if to["copies"]:
            try:
                self.copy(to, claim, came)
            except HeteroError as error:
                self.fails(to, claim, error)
        ran = True
        if to["goes_back"]:
            self.step(to["leaves"], "recalled", claim, seen=to["left_by"])
            if to["arrives"]:
                self.step(to["arrives"], "given_up", claim, force=True, run=to["came_by"])
            ran = self.step(to["leaves"], "back", claim)["ran"]
        plan = move_steps.moved(plan, to, ran, False)
        done = [self.verb(part["item"], arrivals.migrated, claim) for part in plan["parts"]]
        if plan["leaves"]:
            self.leave(plan, claim, done[0]["instances"][0]["host_key"])

    def tried(self, times=3, **how):
        """As a person who is told to run it again; or, of one whose end was begun, to take it back, or to go on."""
        back = how.pop("back", False)
        for _turn in range(times - 1):
            try:
                return self.migrate(back)
            except HeteroError as error:
                back = back and "runs here for good" not in str(error)
            except Stop as stop:
                back = "back=true" in str(stop)
        return self.migrate(back)

    def leave(self, plan, claim, key):
        """The last tasks of playbook migrate_instance."""
        self.step(plan["arrives"], "settled", claim, run=plan["settles"], seen=plan["came_by"])
        with self.at(self.sites[plan["arrives"]]) as host:
            departure = host.store.claim_of(self.instance).departure
        self.step(plan["leaves"], "gone", claim, host_key=key, departure=departure)

    def copy(self, to, claim, came):
        """Tasks of plays/move.yml and tasks/moves/root.yml."""
        old, new = partial(self.step, to["leaves"]), partial(self.step, to["arrives"])
        self.said_of_it = {}
        new("arriving", claim, came=came, seen=to["came_by"])
        self.said_of_it = came = old("leaving", claim, seen=to["left_by"])["came"]
        begun = new("begun", claim, came=came)
        if begun["taken"]:
            return
        for file, number in old("planned", claim, has=begun["has"])["todo"]:
            piece = old("read", claim, piece=dict(file=file, number=number))["piece"]
            new("written", claim, piece=piece)
        digests = old("digested", claim)["digests"]
        new("taken", claim, came=came, digests=digests)

    def fails(self, to, claim, error):
        """Tasks of tasks/moves/fails.yml."""
        told = f"does not move: {error}"
        try:
            self.step(to["arrives"], "given_up", claim, departure=self.said_of_it.get("departure") or "")
            back = self.step(to["leaves"], "back", claim)
            if back["ran"]:
                self.verb(to["leaves"], lifecycle.running, claim)
        except HeteroError as more:
            told += f"; {more}"
        raise HeteroError(told, self.instance, "run this again")

    def terminate(self, without=()):
        """Playbook terminate_instance."""
        answers = [answer for answer in self.answers() if answer["item"] not in without]
        plan = request_steps.find(self.asked, answers, without)
        for part in plan["parts"]:
            self.verb(part["item"], lifecycle.absent, part["claims"][0])

    def reconcile(self):
        """Playbook reconcile."""
        for site in self.sites.values():
            with self.at(site) as host:
                reconcile(host, Change(False), 5.0)

    def lease_ends(self):
        """A turn of each host's reaper after the end of the lease."""
        for site in self.sites.values():
            with self.at(site) as host:
                claim = host.store.claim_of(self.instance)
                if claim is not None:
                    over = Options(timeout=TIMEOUT, over=claim.expires + 1)
                    done = lifecycle.absent(host, self.instance, over, Change())
                    assert not done.get("failed"), done["msg"]

    # ---- killed

    def cut_off(self, points, number, alone):
        """A move, killed before its write `number`; what it said, "" where it went well.

        :param alone: only the host's module is killed, and the play goes on with that; else the play is, too.
        """
        points.reset(number)
        try:
            if alone:
                self.call = partial(alone_in, points)
                self.migrate()
            else:
                self._said("", "the play", alone_in(points, self._whole))
        except (HeteroError, Stop) as error:
            return str(error)
        finally:
            self.call = lambda work: work()
        return ""

    def _whole(self):
        self.migrate()
        return {}

    def sweep(self, step, first):
        """(how many writes a move has, how many were tried): from host to host, killed each time, then what is NEXT."""
        points, tried, counts = Points(), 0, {}
        for alone in (True, False, True, False):  # the first ones make what the later ones find
            self.provide()
            said = self.cut_off(points, 0, alone)
            assert said == "", said
            counts[alone] = points.count
            self.must_run("counting")
        count = max(counts.values())
        turns = cycle([(alone, what) for what in NEXT for alone in (False, True)])
        for _turn in range(first):
            next(turns)
        for number in range(1 + first, count + 1, step):
            alone, what = next(turns)
            self.provide()
            said = self.cut_off(points, 1 + (number - 1) % counts[alone], alone)
            if points.killed:
                tried += 1
                why = f"killed at {number} of {count}, before {points.killed!r}, {'alone' if alone else 'as a whole'} "
                self.must_hold(why)
                try:
                    self.follow(what, f"{why}({said}); then {what}: {self.states()}")
                except (HeteroError, Stop) as error:
                    raise AssertionError(f"{why}({said}); then {what}: {error}") from error
        return count, tried

    def follow(self, what, why):
        """What a person does next, or nobody; it is done twice where the first time says so."""
        if what in ("end", "lease"):
            (self.terminate if what == "end" else self.lease_ends)()
            self.must_be_gone(why)
            return
        if what == "reconcile":
            self.reconcile()
            self.must_hold(why)
        if self._moves or not self.running():
            self.tried(back=self._moves and what == "back")
        if not self.running():  # of one that was taken back, all but its start was done
            self.migrate()
        self.must_hold(why)
        self.must_run(why)

    @property
    def _moves(self):
        states = self.states()
        return len(states) > 1 or bool({"leaving", "arriving"} & set(states.values()))

    # ---- what must hold wherever it is cut off

    def must_be_closed(self):
        """Nobody but root can read a root, on either host."""
        for site in self.sites.values():
            folder = self.folder_of(site)
            for path, _folders, files in os.walk(folder, followlinks=False):
                for name in set(files) & set(ROOTS):
                    mode = os.stat(os.path.join(path, name)).st_mode
                    assert not mode & (stat.S_IRWXG | stat.S_IRWXO), f"{path}/{name}: {mode:o}"

    def must_be_recorded(self):
        """Each claim has its record, and no record is left of none, but of one that was killed as it was written.

        That holds nothing, and the next claim of that name writes over it.
        """
        for site in self.sites.values():
            with self.at(site) as host:
                claims = {claim.instance for claim in host.store.claims()}
                records = {name: host.store.kept(name) for name in host.store.records.instances()}
                assert claims <= set(records)
                left = [record for name, record in records.items() if name not in claims]
                assert [record.state for record in left] == ["arriving"] * len(left)
                assert host.store.all_forgotten() == []


def alone_in(points, work):
    """What `work()` returns in a process of its own that counts `points`, or None where it was killed.

    What it starts, such as a guest, runs on: it is nobody's child here.
    """
    said = os.memfd_create("said")
    child = os.fork()
    if child == 0:
        try:
            points.arm()
            try:
                result = work()
            except (HeteroError, Stop) as error:
                result = dict(failed=True, msg=str(error))
            except BaseException:  # noqa: BLE001 - it is told
                result = dict(failed=True, broken=True, msg=traceback.format_exc())
            points.disarm()
            os.write(said, json.dumps(result).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with open(said, "rb") as file:
        file.seek(0)
        text = file.read()
    return json.loads(text) if text else None
