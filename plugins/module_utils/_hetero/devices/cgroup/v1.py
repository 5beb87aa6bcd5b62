# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device cgroup of cgroup v1: its list is read and changed, and each write is read back.

process_inside.py asks what the list does not show; devices.py knows which folder is whose.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Iterator, NamedTuple, Sequence

from ...core.errors import HeteroError, Refused, naming
from .process_inside import inside
from .rules import EVERYTHING, covered, letters, parse, questions

if TYPE_CHECKING:
    from .rules import Rule

#: Number of cgroups below one, and their depth, that get the same rules: a container may make any number.
MOST_INNER, DEEPEST = 10000, 100


class V1(NamedTuple):
    """One cgroup, by its folder in the hierarchy of controller `devices`."""

    path: str

    @property
    def rules(self) -> list[Rule]:
        """Its list.

        If EVERYTHING is the first rule, all is allowed except denied rules, which the kernel does not show.
        """
        with naming(self.path), open(os.path.join(self.path, "devices.list"), encoding="ascii") as listed:
            return [parse(line) for line in listed if line.strip()]

    def may(self, kind: str, major: int, minor: int, access: str, rules: Sequence[Rule] | None = None) -> bool:
        """Return whether a process in it may use a device.

        :param rules: its list, if it was read already.
        """
        rules = self.rules if rules is None else rules
        if EVERYTHING in rules:
            return all(inside(self.path, [(kind, major, minor, access)]))
        return all(covered(rules, kind, major, minor, bits) for bits in questions(access))

    def allow(self, rule: Rule) -> None:
        """Write the rule to devices.allow and check that it holds.

        Cgroups below get it too if they had all that this one had. A cgroup that somebody narrowed stays as it is.
        """
        before = set(self.rules)
        self._write("devices.allow", rule)
        if not self._says(rule, True):
            what = "was accepted and changed nothing: a wider rule that was denied stays"
            remedy = "allow the wider rule itself, and deny what is to stay closed one by one"
            raise Refused(what, self._thing(rule), remedy)
        for below in self.inner:
            if before <= set(below.rules):
                below._write("devices.allow", rule)

    def allowable(self, rules: Sequence[Rule]) -> None:
        """Check that rules can be allowed.

        :raises Refused: the cgroup above does not have one of them.
        """
        missing = self._missing_above(rules)
        if missing:
            raise self._not_above(missing)

    def deny(self, rule: Rule) -> None:
        """Write the rule, and the list's rules within it, to devices.deny, and check that none of it is left.

        :raises Refused: a wider rule gives it. Nothing was written.
        """
        self.deniable(rule)
        self.remove_within(rule)
        if not self._says(rule, False):
            raise HeteroError("was accepted, and is still allowed", self._thing(rule), "see who else writes there")

    def deniable(self, rule: Rule) -> None:
        """Check that a rule can be denied.

        :raises Refused: a wider rule of the list gives it.
        """
        wider = "; ".join(map(str, self.wider(rule)))
        if wider:
            what = f"the kernel would accept it and change nothing: the wider rule '{wider}' would stay"
            remedy = f"deny '{wider}' itself, and allow the devices that are to stay one by one"
            raise Refused(what, self._thing(rule), remedy)

    def remove_within(self, rule: Rule) -> None:
        """Take the rule out of all rules of the list that are within it."""
        if EVERYTHING in (rule, *self.rules):
            self._write("devices.deny", rule)
            return
        wider = self.wider(rule)
        for one in self.giving(rule):
            if one not in wider:
                self.remove(one._replace(access=letters(one.mask & rule.mask)))

    def remove(self, rule: Rule) -> None:
        """Take accesses from the one rule of the list with exactly these numbers; other rules stay."""
        self._write("devices.deny", rule)
        if any(one[:3] == rule[:3] and one.mask & rule.mask for one in self.rules):
            raise HeteroError("was taken out, and is there again", self._thing(rule), "see who else writes there")

    def wider(self, rule: Rule) -> list[Rule]:
        """Return rules of the list that give some of `rule` and also other devices: denying `rule` leaves them."""
        found = [] if EVERYTHING in self.rules else self.giving(rule)
        return [one for one in found if not rule.holds(one._replace(access=rule.access))]

    def _says(self, rule: Rule, allowed: bool) -> bool:
        """Read the list and return whether all of the rule is allowed (`allowed`), or none of it."""
        rules = self.rules
        if EVERYTHING not in rules:
            return any(one.holds(rule) for one in rules) if allowed else not self.giving(rule)
        if rule == EVERYTHING:
            return allowed
        asked = [(rule.kind, rule.major or 0, rule.minor or 0, letter) for letter in rule.access]
        return all(answer == allowed for answer in inside(self.path, asked))

    def giving(self, rule: Rule) -> list[Rule]:
        """Return the rules of the list that give some of `rule`."""
        return [one for one in self.rules if overlap(one, rule)]

    @property
    def inner(self) -> list[V1]:
        """The first cgroups below it, each with its own list. The kernel denies there whatever is denied here."""
        return list(islice(self._below(), MOST_INNER))

    def _below(self) -> Iterator[V1]:
        for folder, names, _files in os.walk(self.path):
            yield from (V1(os.path.join(folder, name)) for name in sorted(names))
            if folder.count("/") - self.path.count("/") >= DEEPEST:
                names.clear()

    def _thing(self, rule: Rule) -> str:
        return f"rule '{rule}' of {self.path}"

    def _write(self, file: str, rule: Rule) -> None:
        text = "a" if rule == EVERYTHING else str(rule)
        try:
            # one write(2) for each rule: the kernel takes no more
            with os.fdopen(os.open(os.path.join(self.path, file), os.O_WRONLY), "wb", buffering=0) as opened:
                opened.write(text.encode())
        except OSError as error:
            raise self._explained(error, file, rule) from error

    def _explained(self, error: OSError, file: str, rule: Rule) -> Refused:
        what, remedy = f"{file} says: {error.strerror}", "run as root, where cgroups may be changed"
        if error.errno == errno.EINVAL and rule == EVERYTHING:
            what = "all devices at once cannot be allowed or denied while there are cgroups below it"
            remedy = f"name devices one by one, or remove the cgroups below {self.path}"
        elif error.errno == errno.EINVAL:
            what, remedy = "the kernel takes it for no rule", 'write it like "c 195:0 rw"'
        elif error.errno == errno.EPERM and file == "devices.allow" and self._missing_above([rule]):
            return self._not_above(rule)
        elif error.errno == errno.ENOENT:
            what, remedy = "there is no such cgroup", "see whether its container runs"
        return Refused(what, self._thing(rule), remedy)

    @property
    def _above(self) -> V1:
        return V1(os.path.dirname(self.path))

    def _not_above(self, rule: Rule) -> Refused:
        return Refused(f"its parent {self._above.path} does not have it", self._thing(rule), "allow it there first")

    def _missing_above(self, rules: Sequence[Rule]) -> Rule | None:
        """Return the first rule that the cgroup above does not have, which the kernel asks for; None also where that
        cannot be told.
        """
        above = self._above
        if not os.path.exists(os.path.join(above.path, "devices.list")):
            return None
        listed, asked = above.rules, []
        for rule in rules:
            if any(one.holds(rule) for one in listed if one != EVERYTHING or rule == EVERYTHING):
                continue
            if EVERYTHING not in listed or rule == EVERYTHING:
                return rule
            if rule.major is not None and rule.minor is not None:
                asked += [(rule, (kind, rule.major, rule.minor, rule.access)) for kind in rule.kinds]
        with suppress(HeteroError):
            answers = inside(above.path, [device for _rule, device in asked])
            return next((rule for (rule, _device), answer in zip(asked, answers) if not answer), None)
        return None


def overlap(one: Rule, other: Rule) -> bool:
    """Return whether two rules have a device and an access in common."""
    pairs = (one.major, other.major), (one.minor, other.minor)
    numbers = all(None in pair or pair[0] == pair[1] for pair in pairs)
    return numbers and bool(set(one.kinds) & set(other.kinds)) and bool(one.mask & other.mask)
