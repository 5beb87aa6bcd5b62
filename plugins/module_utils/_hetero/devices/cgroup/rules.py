# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of a device cgroup as people and cgroup v1 write them ("c 195:0 rw"), and what a list of them covers.

v1.py and v2.py know which list a cgroup has, and change it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Iterable, NamedTuple

from ...core.errors import BadInput

#: The kernel's letters in its own order (devices.list shows "rwm"), with their bits in programs.
ACCESS = {"r": 2, "w": 4, "m": 1}
KINDS = {"b": 1, "c": 2}
#: Numbers of majors and minors inside the kernel: 12 and 20 bits (linux/kdev_t.h).
MAJORS, MINORS = 1 << 12, 1 << 20

RULE = re.compile(r"(?P<kind>[abc])(?: (?P<major>\d+|\*):(?P<minor>\d+|\*)(?: (?P<access>[rwm]{1,3}))?)?\Z", re.ASCII)
REMEDY = 'write it like "c 195:0 rw"'


class Rule(NamedTuple):
    """Device numbers and what may be done with them. A number None stands for all numbers, kind "a" for all devices."""

    kind: str
    major: int | None
    minor: int | None
    access: str

    def __str__(self) -> str:
        if self.kind == "a":
            return "a *:* rwm"
        major, minor = ("*" if number is None else str(number) for number in (self.major, self.minor))
        return f"{self.kind} {major}:{minor} {self.access}"

    @property
    def mask(self) -> int:
        return mask(self.access)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("b", "c") if self.kind == "a" else (self.kind,)

    def names(self, kind: str, major: int, minor: int) -> bool:
        """Return whether it applies to this device, whatever the access."""
        return kind in self.kinds and self.major in (None, major) and self.minor in (None, minor)

    def holds(self, other: Rule) -> bool:
        """Return whether it covers all that `other` covers."""
        numbers = self.major in (None, other.major) and self.minor in (None, other.minor)
        return numbers and set(other.kinds) <= set(self.kinds) and not other.mask & ~self.mask


EVERYTHING = Rule("a", None, None, "rwm")


def mask(access: str) -> int:
    """Return the bits of letters."""
    return sum(ACCESS[letter] for letter in set(access))


def letters(bits: int) -> str:
    return "".join(letter for letter, bit in ACCESS.items() if bits & bit)


@lru_cache(maxsize=4096)  # a container's list is read twenty times while it gets a GPU
def parse(text: str) -> Rule:
    """Return the Rule that a text is. Only "a", which means everything, may come without access.

    :raises BadInput: it is no rule, or the kernel would take it for another.
    """
    found = RULE.match(" ".join(str(text).split()))
    if not found:
        raise BadInput("is no device rule", f"rule '{text}'", REMEDY)
    kind, major, minor, access = found.group("kind", "major", "minor", "access")
    if kind == "a":
        # the kernel ignores numbers after an "a": "a 1:3 r" would mean everything
        if major not in (None, "*") or minor not in (None, "*") or (access and set(access) != set("rwm")):
            raise BadInput("means all devices to the kernel, whatever stands behind the a", f"rule '{text}'", REMEDY)
        return EVERYTHING
    if access is None:
        raise BadInput("is incomplete", f"rule '{text}'", REMEDY)
    for number, end, name in ((major, MAJORS, "major"), (minor, MINORS, "minor")):
        if number not in (None, "*") and int(number) >= end:
            raise BadInput(f"has a {name} of {number}, beyond {end - 1}", f"rule '{text}'", REMEDY)
    first, second = (None if number == "*" else int(number) for number in (major, minor))
    return Rule(kind, first, second, letters(mask(access)))


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules with those of the same numbers joined, as the kernel and LXC keep their lists."""
    found = {}
    for rule in rules:
        key = rule._replace(access="")
        found[key] = found.get(key, 0) | rule.mask
    return [key._replace(access=letters(bits)) for key, bits in found.items()]


def needed(rules: Iterable[Rule]) -> list[Rule]:
    """Return the merged rules without those that another rule covers completely."""
    rules = merged(rules)
    return [rule for rule in rules if not any(other != rule and other.holds(rule) for other in rules)]


def covered(rules: Iterable[Rule], kind: str, major: int, minor: int, bits: int) -> bool:
    """Return whether ONE of the (merged) rules gives all of `bits`: neither the kernel nor LXC adds up several."""
    return any(rule.names(kind, major, minor) and not bits & ~rule.mask for rule in rules)


def questions(access: str) -> list[int]:
    """Return the masks that the kernel asks for `access`: open() asks reading and writing at once, mknod() separately.
    """
    bits = mask(access)
    return [part for part in (bits & ~ACCESS["m"], bits & ACCESS["m"]) if part]
