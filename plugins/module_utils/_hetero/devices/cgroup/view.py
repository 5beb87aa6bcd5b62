# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists and programs that count for a cgroup at one moment, and their answer for one device or for all devices that
a rule names.

devices.py reads them; v1.py and v2.py change them.
"""

from __future__ import annotations

import itertools
from typing import Iterable, NamedTuple, Sequence, cast

from ...core.errors import HeteroError
from .rules import EVERYTHING, MAJORS, MINORS, Rule, covered, questions
from .v1 import V1
from .v2 import Program

#: Devices at most that stand for a rule with wildcards.
MOST_DEVICES = 20000


class Side(NamedTuple):
    """What one list or program says of a rule."""

    version: str
    who: str
    allows: bool


class View(NamedTuple):
    """The state at one moment.

    :param name: the cgroup's name for people, for errors.
    :param v1: its V1, or None; `rules` is its list.
    """

    name: str
    v1: V1 | None
    rules: list[Rule]
    programs: list[Program]

    def may(self, kind: str, major: int, minor: int, access: str) -> bool:
        """Return whether a process in it may open the device (access r, w, rw) and make its node (m)."""
        if not all(program.may(kind, major, minor, access) for program in self.programs):
            return False
        return self.v1 is None or self.v1.may(kind, major, minor, access, self.rules)

    def verdict(self, rule: Rule) -> str:
        """Return how much of what a rule names is allowed: "allowed", "denied" or "partly".

        "allowed" means all devices with all accesses, "denied" none with any access. For a rule with wildcards,
        exceptions that a v1 list does not show are not noticed.
        """
        seen = set()
        for kind, major, minor in self.devices(rule):
            for access in dict.fromkeys([*rule.access, rule.access]):
                seen.add(self.may(kind, major, minor, access))
                if len(seen) == 2:
                    return "partly"
        return "allowed" if seen == {True} else "denied"

    def sides(self, rule: Rule) -> list[Side]:
        """Return for each list and each program whether it alone allows all that the rule names."""
        alone = [("v1", self.v1.path, View(self.name, self.v1, self.rules, []))] if self.v1 else []
        alone += [("v2", str(program), View(self.name, None, [], [program])) for program in self.programs]
        return [Side(version, who, one.verdict(rule) == "allowed") for version, who, one in alone]

    def allows_everything(self) -> bool:
        """Return whether it may use all devices, apart from exceptions that a v1 list does not show."""
        if self.v1 and EVERYTHING not in self.rules:
            return False
        programs = View(self.name, None, [], self.programs)
        # Most programs have a list of allowed devices: one number that nobody uses shows that, without trying many.
        if not programs.may("c", MAJORS - 1, MINORS - 1, "rwm"):
            return False
        return programs.verdict(EVERYTHING) == "allowed"

    def beyond(self, rules: Sequence[Rule]) -> bool:
        """Return whether anything is allowed that these (merged) rules do not name."""
        if EVERYTHING in rules:
            return False
        for own in (program.own for program in self.programs):
            if own and own.kind == "allow" and all(any(rule.holds(one) for rule in rules) for one in own.rules):
                return False
        if EVERYTHING in self.rules:
            return True
        for kind, major, minor in self.devices(EVERYTHING, rules):
            for access in ("r", "w", "m", "rw"):
                named = all(covered(rules, kind, major, minor, bits) for bits in questions(access))
                if not named and self.may(kind, major, minor, access):
                    return True
        return False

    def devices(self, rule: Rule, more: Iterable[Rule] = ()) -> list[tuple[str, int, int]]:
        """Return devices that stand for all of a rule's. Numbers with which nothing compares have the same answer.

        :param more: further rules whose numbers matter.
        """
        if rule.major is not None and rule.minor is not None:
            return [(kind, rule.major, rule.minor) for kind in rule.kinds]
        majors, minors = (
            {own}
            if own is not None
            else {0, end - 1, *(cast("int", one[at]) for one in [*self.rules, *more] if one[at] is not None)}
            for own, at, end in ((rule.major, 1, MAJORS), (rule.minor, 2, MINORS))
        )
        done = set()
        while True:
            devices = set(itertools.product(rule.kinds, majors, minors)) - done
            if not devices:
                return sorted(done)
            done |= devices
            if len(done) > MOST_DEVICES:
                what = f"cannot tell: more than {MOST_DEVICES} devices are told apart"
                raise HeteroError(what, f"rule '{rule}' of {self.name}", "name devices one by one")
            compared: set[int] = set()
            for kind, major, minor in devices:
                for program in self.programs:
                    program.may(kind, major, minor, rule.access, compared=compared)
            if rule.major is None:
                majors |= {number for number in compared if 0 <= number < MAJORS}
            if rule.minor is None:
                minors |= {number for number in compared if 0 <= number < MINORS}
