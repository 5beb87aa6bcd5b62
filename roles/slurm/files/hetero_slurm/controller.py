# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's controller, by scontrol: what it says of its nodes, and what it is told of them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import Sequence

from site_file import SiteError

#: How all reasons begin that these programs give. Only such a slot is given back to Slurm by them.
OURS = "hetero: "
#: What slurmctld says itself of nodes that did not come, or went (src/slurmctld: ping_nodes.c, node_mgr.c).
SLURMS = ("Not responding", "ResumeTimeout reached", "Node unexpectedly rebooted")
#: Seconds for one answer; slurmctld's own MessageTimeout is 10.
ANSWER = 60
#: Characters of a reason that somebody reads in a table, and of a comment, which may have a host key.
LONGEST, COMMENT = 200, 2000


@dataclass(frozen=True)
class Node:
    """What Slurm says of a node: its words of State, such as IDLE, CLOUD, POWERED_DOWN, its reason and its comment."""

    name: str
    state: frozenset[str]
    reason: str = ""
    comment: str = ""

    @property
    def ours(self) -> bool:
        return self.reason.startswith(OURS)

    @property
    def slurms(self) -> bool:
        return self.reason.startswith(SLURMS)

    @property
    def off(self) -> bool:
        """Return whether Slurm takes it for switched off."""
        return "POWERED_DOWN" in self.state and not self.state & {"POWERING_UP", "POWERING_DOWN"}

    @property
    def rising(self) -> bool:
        """Return whether Slurm waits for it. No job has begun there."""
        return bool(self.state & {"POWERING_UP", "POWER_UP"}) and "DOWN" not in self.state

    @property
    def ending(self) -> bool:
        """Return whether Slurm wants nothing there: it is switched off, or being so, and no job has it."""
        wanted = self.rising or self.state & {"ALLOCATED", "MIXED"}
        return bool(self.state & {"POWERING_DOWN", "POWERED_DOWN"}) and not wanted

    @property
    def up(self) -> bool:
        """Return whether its slurmd answers."""
        return not (self.rising or self.off or self.state & {"NOT_RESPONDING", "POWERING_DOWN"})

    @property
    def awaited(self) -> bool:
        """Return whether a job has it, and its slurmd does not answer yet."""
        return bool(self.state & {"ALLOCATED", "MIXED"}) and not self.up

    @property
    def told_to_go(self) -> bool:
        """Return whether it takes no further job, and goes down after the one that it has, or is down."""
        return bool(self.state & {"POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN"})


@dataclass(frozen=True)
class Job:
    """A job that has a node, and who may use it therefore."""

    number: str
    user: str


def parsed(text: str) -> dict[str, Node]:
    """Return the nodes in what `scontrol --oneliner show nodes` prints."""
    found = {}
    for line in text.splitlines():
        name, state = re.search(r"\bNodeName=(\S+)", line), re.search(r"\bState=(\S+)", line)
        if name and state:
            reason = re.search(r"\bReason=(.*?)(?: \[[^\]]*\])?(?: Comment=.*)?\s*\Z", line)
            comment = re.search(r" Comment=(.*?)\s*\Z", line)
            words = frozenset(word.rstrip("*~#!%$@^-") for word in state[1].split("+"))
            said = [one[1] if one else "" for one in (reason, comment)]
            found[name[1]] = Node(name[1], words, *said)
    return found


class Controller:
    """slurmctld, on this machine."""

    def names(self, hostlist: str) -> list[str]:
        """Return the names in a hostlist such as tp64-[1-3]."""
        return self._said("show", "hostnames", hostlist).split()

    def nodes(self) -> dict[str, Node]:
        return parsed(self._said("--oneliner", "show", "nodes"))

    def some(self, names: Sequence[str]) -> dict[str, Node]:
        """Return these nodes, of those that there are."""
        found = parsed(self._said("--oneliner", "show", "node", ",".join(names)))
        return {name: found[name] for name in names if name in found}

    def jobs_on(self, name: str) -> list[Job]:
        """Return the jobs that have a node, or for which it comes: one at most, where a node is a job's alone."""
        which = ["--states=CONFIGURING,RUNNING,SUSPENDED", "--nodelist", name]
        said = self._run("squeue", "--noheader", "--format=%A %u", *which)
        return [Job(*line.split(maxsplit=1)) for line in said.splitlines()]

    def set(self, names: Sequence[str], state: str, reason: str = "") -> None:
        """Give nodes a state, with a reason of ours where there is one."""
        why = [f"reason={one_line(OURS + reason)}"] if reason else []
        self._said("update", f"nodename={','.join(names)}", f"state={state}", *why)

    def note(self, names: Sequence[str], text: str) -> None:
        """Keep where the slots' instances are in the nodes' comments."""
        self._said("update", f"nodename={','.join(names)}", f"comment={one_line(text, COMMENT)}")

    def take_out(self, name: str, why: str) -> None:
        """Take a slot out that has no node: its job goes back to the queue, and the slot waits for `sync`.

        Down gives the job back, off makes Slurm end what there is of the slot, drain keeps the next job from it. Slurm
        opens it again as it switches it off (idle_on_node_suspend), so `suspend` closes it once more.
        """
        self.set([name], "down", why)
        self.set([name], "power_down")
        self.set([name], "drain", why)

    def _said(self, *words: str) -> str:
        return self._run("scontrol", *words)

    def _run(self, *argv: str) -> str:
        told = " ".join(argv)
        try:
            done = subprocess.run(argv, check=False, capture_output=True, text=True, errors="replace", timeout=ANSWER)
        except subprocess.TimeoutExpired as error:
            raise SiteError(f"{told}: no answer within {ANSWER} s: does slurmctld run?") from error
        if done.returncode:
            said = one_line(done.stderr or done.stdout)
            raise SiteError(f"{told}: {said}: does slurmctld run (scontrol ping)?")
        return done.stdout


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return text as one printable line that is not too long for a table."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= longest else f"{line[: longest - 2]} …"
