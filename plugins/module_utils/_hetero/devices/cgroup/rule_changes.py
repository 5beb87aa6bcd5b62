# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of a device cgroup allowed, denied, or made the only ones: first planned, then carried out.

The plan is made by evaluation before anything changes: what is as wanted stays, and what cannot be done is refused.
v1.py and v2.py change lists and programs; LXC changes its own rules.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Protocol, Sequence, cast

from ...core.errors import HeteroError, Refused, TimedOut, naming
from ...core.locks import holder_of, open_turn, taken
from .program_owners import way
from .rules import EVERYTHING, letters, merged, parse
from .v1 import overlap
from .v2 import V2
from .view import View

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .devices import DeviceCgroup
    from .program import Own
    from .rules import Rule
    from .v1 import V1
    from .v2 import Program

#: The owner of the programs that are made here.
OWNER = "cgroup_devices"


class Step(NamedTuple):
    """One thing to do.

    :param words: what, for people.
    :param act: does it.
    """

    words: str
    act: Callable[[], object]


class RuleList(Protocol):
    """A container for whose device cgroup LXC has a list of rules."""

    def allow(self, rule: str) -> None: ...
    def deny(self, rule: str) -> None: ...


class Changing:
    """A cgroup and who else can change it.

    :param container: its container, if LXC has a list of rules for it.
    """

    def __init__(self, cgroup: DeviceCgroup, container: RuleList | None = None) -> None:
        self.cgroup = cgroup
        self.container = container

    @property
    def _v2(self) -> V2:
        """Its v2 side, for callers that know it has one."""
        return cast("V2", self.cgroup.v2)

    @property
    def _container(self) -> RuleList:
        """Its container, for callers that know it has one."""
        return cast("RuleList", self.container)

    @contextmanager
    def alone(self, deadline: Deadline) -> Iterator[None]:
        """Let one process at a time change the cgroup, so that no rule is lost."""
        sides = dict(v1=self.cgroup.v1, v2=self.cgroup.v2)
        with ExitStack() as stack, naming(self.cgroup.folders[0]):
            for version, path in ((version, side.path) for version, side in sides.items() if side):
                file = open_turn(f"cgroup-{version}", path)
                stack.callback(os.close, file)
                if not taken(file, deadline):
                    what = f"is being changed by {holder_of(file)} for {deadline.seconds:g} s"
                    raise TimedOut(what, self.cgroup.name, "wait for it, or end that process")
            yield

    def plan(self, state: str, rules: Iterable[Rule]) -> list[Step]:
        """Return the steps to a state; none if it is reached already.

        :param state: "allowed", "denied" or "exact".
        :raises Refused: it cannot be reached. Nothing was changed.
        """
        rules = merged(rules)
        steps = []
        if state == "denied":
            for rule in rules:
                steps += self.denying(rule) if self.cgroup.verdict(rule) != "denied" else []
            return steps
        steps = self.allowing(rules)
        return steps + self.closing(rules) if state == "exact" else steps

    # ---- seen

    def seen(self, state: str, rules: Iterable[Rule]) -> dict[str, str]:
        """Return {rule: how much of it is allowed now}, for "exact" also of all else."""
        view = self.cgroup.look()
        found = {str(rule): view.verdict(rule) for rule in rules}
        if state == "exact":
            found["all else"] = "partly" if view.beyond(merged(rules)) else "denied"
        return found

    def proof(self, rules: Iterable[Rule]) -> dict[str, list[dict[str, Any]]]:
        """Return {rule: what each list and each program says of it now}, as a module returns it."""
        return {str(rule): [side._asdict() for side in self.cgroup.sides(rule)] for rule in rules}

    @staticmethod
    def wanted(state: str, rules: Iterable[Rule]) -> dict[str, str]:
        found = dict.fromkeys(map(str, rules), "denied" if state == "denied" else "allowed")
        return dict(found, **{"all else": "denied"}) if state == "exact" else found

    def proven(self, state: str, rules: Sequence[Rule]) -> dict[str, str]:
        """Return what is allowed now, after a change.

        :raises HeteroError: it is not as wanted; the text has what each list and program says.
        """
        found, wanted = self.seen(state, rules), self.wanted(state, rules)
        for rule, verdict in found.items():
            if verdict != wanted[rule]:
                sides = self.cgroup.sides(EVERYTHING if rule == "all else" else parse(rule))
                said = "; ".join(f"{side.who} {'allows' if side.allows else 'denies'} it" for side in sides)
                what = f"is {verdict}, not {wanted[rule]}, after all was done ({said or 'no list and no program'})"
                remedy = "name the rule as its owner wrote it, or see who else changes this cgroup"
                raise HeteroError(what, f"rule '{rule}' of {self.cgroup.name}", remedy)
        return found

    # ---- allowed

    def allowing(self, rules: Sequence[Rule]) -> list[Step]:
        """Return steps that allow rules: one for each list and each program that denies any of one."""
        steps, v1 = [], self.cgroup.v1
        programs = self._programs() if self.cgroup.v2 else []
        closed = self._closed(v1, rules) if v1 else []
        for rule in rules:
            if v1 and rule in closed:
                steps.append(Step(f"allow {rule} in {v1.path}", partial(v1.allow, rule)))
            for path, program in programs:
                if not grants(program, rule):
                    steps.append(self._through(path, program, rule))
        return steps

    def _closed(self, v1: V1, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rules that a list does not allow, each of which can be allowed."""
        listed = View(self.cgroup.name, v1, v1.rules, [])
        closed = [rule for rule in rules if listed.verdict(rule) != "allowed"]
        v1.allowable(closed)
        return closed

    def _through(self, path: str, program: Program, rule: Rule) -> Step:
        """Return the step by which one program comes to allow the rule."""
        thing, here = f"rule '{rule}' of {self.cgroup.name}", path == os.path.realpath(self._v2.path)
        if program.own and here:
            for one in program.own.rules if program.own.kind == "forbid" else ():
                without(one, rule, program)  # raises Refused if that cannot be expressed
            return Step(f"take {rule} out of {program}", lambda: self._open_own(rule))
        if program.own:
            raise Refused(f"{program} of {path} denies it", thing, f"allow it there: cgroup: {path}")
        if self.container is not None and here:
            return Step(f"have LXC allow {rule}", lambda: self._container.allow(str(rule)))
        what = f"{program} of {path} denies it, and only who loaded it can change that"
        raise Refused(what, thing, way(path, program, rule))

    def _open_own(self, rule: Rule) -> None:
        """Take the rule out of this collection's programs on this cgroup."""
        side = self._v2
        for program in side.direct:
            own = program.own
            if own is None or grants(program, rule):
                continue
            if own.kind == "allow":
                side.rewrite(program, merged([*own.rules, rule]))
                continue
            left = [rest for one in own.rules for rest in without(one, rule, program)]
            if left:
                side.rewrite(program, left)
            else:
                side.drop(program)

    def _programs(self) -> list[tuple[str, Program]]:
        """Return (path of its cgroup, program) of all effective programs, those of this cgroup first."""
        wanted = {program.id: program for program in self._v2.effective}
        path, found = os.path.realpath(self._v2.path), []
        while wanted and os.path.exists(os.path.join(path, "cgroup.procs")):
            found += [(path, wanted.pop(one.id)) for one in V2(path).direct if one.id in wanted]
            path = os.path.dirname(path)
        # programs of ancestors that a cgroup namespace hides
        return found + [("an outer cgroup", program) for program in wanted.values()]

    # ---- denied

    def denying(self, rule: Rule) -> list[Step]:
        """Return steps that deny a rule of which something is allowed."""
        steps, v1, v2 = [], self.cgroup.v1, self.cgroup.v2
        if v1:
            if not v1.wider(rule) or not (v2 and v2.limitable):
                v1.deniable(rule)
                return [Step(f"deny {rule} in {v1.path}", lambda: v1.deny(rule))]
            steps.append(Step(f"deny what is within {rule} in {v1.path}", lambda: v1.remove_within(rule)))
        elif self.container is not None:
            return [Step(f"have LXC deny {rule}", lambda: self._by_container(rule))]
        return [*steps, Step(f"forbid {rule} by a program of our own", lambda: self._forbid(rule))]

    def _by_container(self, rule: Rule) -> None:
        """Deny a rule by LXC's own list, and if that leaves it open by a program of the collection."""
        if not any(program.own is None for program in self._v2.direct):
            # Without a list, LXC 5 takes the first deny as a list that denies everything. This makes it one that allows
            # all else, and changes nothing.
            self._container.allow("a")
        self._container.deny(str(rule))
        if self.cgroup.verdict(rule) != "denied":
            self._forbid(rule)

    def _forbid(self, rule: Rule) -> None:
        there = self.cgroup.v2.of(OWNER) if self.cgroup.v2 else None
        self.cgroup.forbid(merged([*(cast("Own", there.own).rules if there else ()), rule]), OWNER)

    # ---- exact

    def closing(self, rules: Sequence[Rule]) -> list[Step]:
        """Return steps after which only these rules are allowed."""
        v1 = self.cgroup.v1
        if not self.cgroup.look().beyond(rules):
            return []
        if v1:
            return [Step(f"deny all else in {v1.path}", lambda: narrow(v1, rules))]
        name = f"{OWNER} exact"
        return [Step("allow nothing else, by a program of our own", lambda: self._v2.only(rules, name))]


def grants(program: Program, rule: Rule) -> bool:
    """Return whether one program allows all that a rule names."""
    return View(str(program), None, [], [program]).verdict(rule) == "allowed"


def narrow(v1: V1, rules: Sequence[Rule]) -> None:
    """Leave only these rules in a v1 list: add the missing ones first, then remove the others."""
    if EVERYTHING in v1.rules and EVERYTHING not in rules:
        v1.deny(EVERYTHING)
    for rule in rules:
        if not any(one.holds(rule) for one in v1.rules):
            v1.allow(rule)
    for one in v1.rules:
        kept = 0
        for rule in rules:
            if rule._replace(access=one.access).holds(one):
                kept |= rule.mask & one.mask
        if one.mask & ~kept:
            v1.remove(one._replace(access=letters(one.mask & ~kept)))


def without(one: Rule, rule: Rule, program: Program) -> list[Rule]:
    """Return what is left of a denied rule after another rule is allowed again."""
    if not overlap(one, rule):
        return [one]
    if not rule._replace(access=one.access).holds(one):
        what = f"{program} denies the wider rule '{one}'"
        raise Refused(what, f"rule '{rule}'", f"allow '{one}' itself, and deny what is to stay closed one by one")
    left = one.mask & ~rule.mask
    return [one._replace(access=letters(left))] if left else []
