# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process or a cgroup may do with devices, and that changed: cgroup v1 and v2 as one.

On a host with both, a device must pass both. Who may allow what in somebody else's cgroup is the caller's to know.
"""

from __future__ import annotations

import itertools
import os
from typing import NamedTuple

from ..errors import BadInput, HeteroError, Refused
from . import mounts
from .rules import EVERYTHING, MAJORS, MINORS
from .v1 import V1
from .v2 import V2

#: At most so many questions for one rule with wildcards.
MOST_QUESTIONS = 20000


class Side(NamedTuple):
    """What one list or program says of a question."""

    version: str
    who: str
    allows: bool


class DeviceCgroup(NamedTuple):
    """The cgroups that count for a process, one of each hierarchy; None where there is none.

    :param name: what people call it, for errors.
    """

    name: str
    v1: V1 | None
    v2: V2 | None

    @property
    def version(self):
        """Which lists and programs count: "v1", "v2" or "hybrid"."""
        return "hybrid" if self.v1 and self.v2 else "v1" if self.v1 else "v2"

    def may(self, kind, major, minor, access):
        """Whether a process in it may open the device so (access r, w, rw), and make its node (m).

        Exact: the v1 list, and every v2 program of it and of its ancestors.
        """
        return all(side.may(kind, major, minor, access) for side in (self.v2, self.v1) if side)

    def verdict(self, rule):
        """How much of what a rule names is allowed: "allowed", "denied" or "partly".

        "allowed" is all of them; "denied" is none, not even one access alone.
        """
        seen = set()
        for asked in self._questions(rule):
            seen.add(self.may(*asked))
            if len(seen) == 2:
                return "partly"
        return "allowed" if seen == {True} else "denied"

    def sides(self, rule):
        """The proof: what each list and each program in effect says of a rule; for one with wildcards, of each of its
        devices at once.
        """
        found = []
        asked = list(self._questions(rule, whole=True))
        if self.v1:
            found.append(Side("v1", self.v1.path, all(self.v1.may(*one) for one in asked)))
        for program in self.v2.effective if self.v2 else ():
            found.append(Side("v2", str(program), all(program.may(*one) for one in asked)))
        return found

    def allows_everything(self):
        """Whether no device is denied: then only the absence of nodes keeps anything from it."""
        if self.v1 and EVERYTHING not in self.v1.rules:
            return False
        if self.v2 and not self.v2.effective and not self.v1:
            return True
        return all(self.may(*asked) for asked in self._questions(EVERYTHING, whole=True))

    def allow_v1(self, rule):
        self._side(self.v1, "v1").allow(rule)

    def deny_v1(self, rule):
        self._side(self.v1, "v1").deny(rule)

    def forbid(self, rules, name):
        """Our own deny-only program on the v2 side, found again by `name` (a ledger id); its number."""
        return self._own_side().forbid(rules, name)

    def unforbid(self, name):
        """Take that program away; whether there was one."""
        return self._side(self.v2, "v2").unforbid(name)

    def _own_side(self):
        side = self._side(self.v2, "v2")
        if os.path.exists(os.path.join(side.path, "cgroup.type")):  # the root has none
            return side
        what = "is in the root of the unified hierarchy: a program there would count for the whole machine"
        raise Refused(what, self.name, "put it into a cgroup of its own")

    def _side(self, side, version):
        if side is None:
            raise Refused(f"has no device cgroup of {version}", self.name, f"it is {self.version}")
        return side

    def _questions(self, rule, whole=False):
        """Questions that stand for all devices of a rule: a number that is compared with by no list and no program is
        answered like the next such number.
        """
        accesses = [rule.access] if whole else list(rule.access) + [rule.access]
        wild = None in rule[1:3]
        majors, minors = self._numbers(rule) if wild else ((rule.major,), (rule.minor,))
        if len(majors) * len(minors) > MOST_QUESTIONS:
            what = f"cannot tell: it is compared with {len(majors)} majors and {len(minors)} minors"
            raise HeteroError(what, f"rule '{rule}' of {self.name}", "name devices one by one")
        return itertools.product(rule.kinds, majors, minors, dict.fromkeys(accesses))

    def _numbers(self, rule):
        """(majors, minors) worth asking for a rule with wildcards: where an answer can change."""
        lists = self.v1.rules if self.v1 else ()
        programs = self.v2.effective if self.v2 else ()
        majors, minors = (
            {own} if own is not None else {0, end - 1, *(one[at] for one in lists if one[at] is not None)}
            for own, at, end in ((rule.major, 1, MAJORS), (rule.minor, 2, MINORS))
        )
        done = set()
        while True:
            asked = set(itertools.product(rule.kinds, majors, minors)) - done
            if not asked or len(asked) + len(done) > MOST_QUESTIONS:
                return majors, minors
            compared = set()
            for device in asked:
                for program in programs:
                    program.may(*device, rule.access, compared=compared)
            done |= asked
            if rule.major is None:
                majors |= {number for number in compared if 0 <= number < MAJORS}
            if rule.minor is None:
                minors |= {number for number in compared if 0 <= number < MINORS}


def of_process(pid, proc="/proc"):
    """The DeviceCgroup of a running process."""
    there = mounts.cgroups(pid, proc)
    found = {version: mounts.directory(version, cgroup, proc) for version, cgroup in there.items()}
    return _found(f"process {pid}", found)


def of_container(pid, name, proc="/proc"):
    """The DeviceCgroup of a whole container of LXC, by its init's process and its name."""
    there = mounts.container_cgroups(pid, name, proc)
    return _found(f"container {name}", {one: mounts.directory(one, cgroup, proc) for one, cgroup in there.items()})


def of_path(path, proc="/proc"):
    """The DeviceCgroup of a cgroup: its directory, or its name as LXC and systemd give it to both hierarchies.

    The cgroup of the same name in the other hierarchy counts as well, where there is one.
    """
    there = mounts.cgroup_at(path, proc) if os.path.isabs(path) and os.path.isdir(path) else None
    cgroup = there[1] if there else os.path.normpath("/" + path)
    found = {version: mounts.directory(version, cgroup, proc) for version in (mounts.V1, mounts.V2)}
    if not any(found.values()):
        where = ", ".join(mount.point for listed in mounts.mounts(proc).values() for mount in listed) or "none mounted"
        raise BadInput("is no device cgroup", f"cgroup {path}", f"name a directory below one of: {where}")
    return _found(f"cgroup {path}", found)


def _found(name, directories):
    v1, v2 = (directories.get(version) for version in (mounts.V1, mounts.V2))
    if not v1 and not v2:
        raise HeteroError("is in no device cgroup that is mounted here", name, "mount the cgroup hierarchies")
    return DeviceCgroup(name, v1 and V1(v1), v2 and V2(v2))
