# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's jobs on boards of the lab that really boot, beside provisions of the same boards by hand, in turns. Prints
what the first line of each waited for. If this fails, whoever queues for a board waits longer than its boot.

The lab's boards run no slurmd, so each job has an ssh login (docs/docsite/rst/guide_slurm.rst).
"""

from __future__ import annotations

import re
import shutil
import statistics
import time
from dataclasses import dataclass

import pytest
from labs import FLAVOR
from slurm_of_the_lab import HOME, LIMIT, SlurmOfTheLab

pytestmark = [
    pytest.mark.skipif(not shutil.which("slurmctld"), reason="needs Debian's slurmctld: tools/setup test"),
    pytest.mark.long,
]

#: Turns of one job and one provision by hand, and boards of the gang after them.
TURNS, GANG = 3, 2
#: What Slurm may add to a provision by hand, in seconds; how much it was is printed. salloc alone looks each three
#: seconds whether its nodes are up (22.05, src/salloc: salloc.c, POLL_SLEEP), and the rest is a login to the board.
#: On a machine so busy that a provision by hand takes longer than that, as much as this takes.
MOST = 15


@dataclass(frozen=True)
class Waited:
    """What a first line waited for: when it was asked for, when each step was over, and when the line came."""

    way: str
    board: int
    submit: float
    asked: float
    claimed: float
    power: float
    running: float
    line: float

    @property
    def total(self):
        return self.line - self.submit

    def __str__(self):
        steps = (self.submit, self.asked, self.claimed, self.power, self.running, self.line)
        cells = "".join(f"{to - since:9.2f}" for since, to in zip(steps, steps[1:]))
        return f"{self.way:12} board{self.board} {cells} {self.total:8.2f}"


HEAD = (
    "WAY          BOARD       ASKED  CLAIMED    POWER      SSH     LINE    TOTAL   (seconds, each since the one before)"
)


def waited(slurm, way, instance, submit, asked, line):
    """What the proxy node has noted of one instance."""
    found = {}
    for at, board, name, phase, text in slurm.events(submit):
        if name == instance:
            what = "claimed" if phase == "claim" and text.startswith("claimed for ") else phase
            found.setdefault(what, (at, board))
    assert {"claimed", "power", "running"} <= set(found), found
    steps = {what: found[what][0] for what in ("claimed", "power", "running")}
    return Waited(way, found["claimed"][1], submit, asked, line=line, **steps)


@pytest.fixture
def slurm(lab, tmp_path):
    made = SlurmOfTheLab(tmp_path, lab)
    try:
        made.set_up({"slurmd": False})
        yield made
    finally:
        made.down()


def by_slurm(slurm, count=1):
    """A job of so many boards, which says a line on each; what each waited for."""
    each = "for n in $(scontrol show hostnames $SLURM_JOB_NODELIST); do HOME=/home/ann slurm-board $n uname -n; done"
    submit = time.time()
    rc, lines = slurm.lines("salloc", f"-N{count}", "-C", FLAVOR, "sh", "-c", each, user="ann")
    said = "\n".join(f"{at - submit:6.2f} {line}" for at, line in lines)
    print(f"# salloc -N{count} -C {FLAVOR} …\n{said}\n")
    assert rc == 0, said + slurm.words()
    when = {line: at for at, line in lines if re.fullmatch(r"tp64-\d+", line)}
    names = sorted(when)
    assert len(names) == count, said
    asked = slurm.begun(submit)
    slurm.until(lambda: all("POWERED_DOWN" in slurm.node(name) for name in names) and not slurm.programs(), LIMIT)
    way = "slurm" if count == 1 else f"slurm of {count}"
    return [waited(slurm, way, name, submit, asked, when[name]) for name in names]


def by_hand(slurm, board):
    """The same board, asked for as Slurm's user by hand."""
    key = f"{HOME}/.ssh/id_ed25519"
    named = dict(instance="hand", flavor=FLAVOR, board=board, key_file=f"{key}.pub")
    line = ["ssh", "-F", f"{HOME}/ssh/hand", "-i", key, "hand", "uname", "-n"]
    both = 'play=$1; shift; eval "$play" && exec "$@"'
    played = " ".join(f"'{word}'" for word in slurm.play("provision_instance", **named))
    submit = time.time()
    rc, lines = slurm.lines("sh", "-c", both, "sh", played, *line, user="slurm")
    said = "\n".join(f"{at - submit:6.2f} {line}" for at, line in lines)
    print(f"# ansible-playbook hetero.compute.provision_instance -e instance=hand -e board={board} …\n{said}\n")
    assert rc == 0, said
    assert lines[-1][1] == "hand", said
    rc, lines_ = slurm.lines(*slurm.play("terminate_instance", instance="hand"), user="slurm")
    assert rc == 0, lines_
    return waited(slurm, "by hand", "hand", submit, submit, lines[-1][0])


def test_a_job_waits_little_longer_than_who_asks_by_hand(slurm):
    """Lost: people's time, for a queue that takes longer than the boot."""
    found = []
    for _turn in range(TURNS):
        (job,) = by_slurm(slurm)
        found += [job, by_hand(slurm, job.board)]
    gang = by_slurm(slurm, GANG)
    more = [job.total - hand.total for job, hand in zip(found[::2], found[1::2])]
    print("\n".join([HEAD, *map(str, found), *map(str, gang)]))
    each, middle = ", ".join(f"{one:.2f}" for one in more), statistics.median(more)
    print(f"Slurm over by hand, in turns: {each}; median {middle:.2f} s")
    assert middle < max(MOST, statistics.median(hand.total for hand in found[1::2])), found
    assert len({one.board for one in gang}) == GANG
