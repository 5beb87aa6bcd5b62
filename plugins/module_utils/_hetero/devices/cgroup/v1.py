# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device cgroup of cgroup v1: its list is read and changed, each write is read back, and a process inside asks the
kernel what the list does not show.

devices.py knows which folder is whose.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Iterator, NamedTuple, Sequence

from ...core.errors import HeteroError, Refused, naming
from . import mounts
from .rules import ACCESS, EVERYTHING, covered, letters, parse, questions
from .v2 import V2

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
            return inside(self.path, kind, major, minor, access)
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

    def allowable(self, rule: Rule) -> None:
        """Check that a rule can be allowed.

        :raises Refused: the cgroup above does not have it.
        """
        if not self._granted(rule):
            raise self._not_above(rule)

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
        device = (rule.kind, rule.major or 0, rule.minor or 0)
        return all(inside(self.path, *device, letter) == allowed for letter in rule.access)

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
        elif error.errno == errno.EPERM and file == "devices.allow" and not self._granted(rule):
            return self._not_above(rule)
        elif error.errno == errno.ENOENT:
            what, remedy = "there is no such cgroup", "see whether its container runs"
        return Refused(what, self._thing(rule), remedy)

    @property
    def _above(self) -> V1:
        return V1(os.path.dirname(self.path))

    def _not_above(self, rule: Rule) -> Refused:
        return Refused(f"its parent {self._above.path} does not have it", self._thing(rule), "allow it there first")

    def _granted(self, rule: Rule) -> bool:
        """Return whether the cgroup above has a rule, which the kernel asks for; True where that cannot be told."""
        above = self._above
        if not os.path.exists(os.path.join(above.path, "devices.list")):
            return True
        if any(one.holds(rule) for one in above.rules if one != EVERYTHING or rule == EVERYTHING):
            return True
        if EVERYTHING not in above.rules or rule == EVERYTHING:
            return False
        if rule.major is None or rule.minor is None:
            return True
        with suppress(HeteroError):
            return all(inside(above.path, kind, rule.major, rule.minor, rule.access) for kind in rule.kinds)
        return True


def overlap(one: Rule, other: Rule) -> bool:
    """Return whether two rules have a device and an access in common."""
    pairs = (one.major, other.major), (one.minor, other.minor)
    numbers = all(None in pair or pair[0] == pair[1] for pair in pairs)
    return numbers and bool(set(one.kinds) & set(other.kinds)) and bool(one.mask & other.mask)


def inside(path: str, kind: str, major: int, minor: int, access: str) -> bool:
    """Return what the kernel tells a process in this cgroup: access(2) for reading and writing, mknod(2) for m.

    It is for lists that allow all except some devices, which no file shows. Nothing is opened. The process is a child
    of this one and is in none of the container's other cgroups and namespaces. It stays in this process's cgroup of v2;
    if that one denies the device, there is no answer.
    """
    folder = tempfile.mkdtemp(prefix="hetero-cgroup-")
    try:
        if all(_asked(path, folder, kind, major, minor, bits) for bits in questions(access)):
            return True
    finally:
        shutil.rmtree(folder)
    ours = mounts.directories(mounts.cgroups("self")).get(mounts.V2)
    if ours and not V2(ours).may(kind, major, minor, access):
        what = f"cannot tell whether it may {access} {kind} {major}:{minor}: programs on our own cgroup deny it"
        raise HeteroError(what, path, f"run it outside of {ours}")
    return False


def _asked(path: str, folder: str, kind: str, major: int, minor: int, bits: int) -> bool:
    node = os.path.join(folder, "node")
    mode = {"b": stat.S_IFBLK, "c": stat.S_IFCHR}[kind] | 0o600
    device = os.makedev(major, minor)
    making = bool(bits & ACCESS["m"])
    with naming(node):
        if not making:
            os.mknod(node, mode, device)
        read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # the child must never return into the parent's code
        try:
            os.write(write, _answer(path, node, mode, device, bits))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    if os.path.lexists(node):
        os.unlink(node)
    if said not in ("y", "n"):
        what = f"cannot be entered ({said or 'the process inside ended'})"
        raise HeteroError(what, path, "see whether its container still runs")
    return said == "y"


def _answer(path: str, node: str, mode: int, device: int, bits: int) -> bytes:
    try:
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as processes:
            processes.write("0")
    except OSError as error:
        return str(error).encode()
    try:
        if bits & ACCESS["m"]:
            os.mknod(node, mode, device)
            return b"y"
    except PermissionError:
        return b"n"
    except OSError as error:
        return str(error).encode()
    wanted = bool(bits & ACCESS["r"]) * os.R_OK | bool(bits & ACCESS["w"]) * os.W_OK
    return b"y" if os.access(node, wanted) else b"n"
