# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ten boards, thirty jobs of three people, and all that Slurm is for: shares, a reservation, a gang, preemption,
accounts; while a board dies under its job, and slurmctld is killed. Prints a table: what sacct says of each job, beside
the claims of the proxy node, and the time from a job's submit to its first line beside its board's own boot. If this
fails, a job has no board, or one that another job has used.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
from dataclasses import dataclass
from datetime import datetime

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.accounts import people
from ansible_collections.hetero.compute.tests.unit.slurm.machines import LINES, Slurm

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root"),
    pytest.mark.skipif(not shutil.which("slurmdbd"), reason="needs Debian's slurmdbd: tools/setup test"),
    pytest.mark.skipif(not shutil.which("mariadbd"), reason="needs Debian's MariaDB: tools/setup test"),
    pytest.mark.long,
]

BOARDS, WAVE, LIMIT = 10, 120, 5400
PARTITIONS = {
    "boards": {"flavors": ["tp64.8x8"], "default": True, "max_time": "1:00:00", "priority": 1},
    "urgent": {"flavors": ["tp64.8x8"], "priority": 10, "options": {"PreemptMode": "OFF"}},
}
OPTIONS = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE", "SlurmdTimeout": 60}
#: As the guide has it for shares: each second that a job used counts.
OPTIONS["AccountingStorageEnforce"] = "associations,limits"
#: The first line of a job, with its time, where the test reads it (machines.py).
LINE = f"date +%s.%N >> {LINES}/$SLURM_JOB_ID"
PEOPLE = ("ann", "bob", "cyd")
USERS = [{"name": name, "uid": 5001 + number, "gid": 5001 + number} for number, name in enumerate(PEOPLE)]
FIELDS = "JobIDRaw,User,Partition,NodeList,Submit,Start,End,State"


@dataclass(frozen=True)
class Ran:
    """One run of a job, as sacct has it. A job that was queued again has several."""

    job: int
    user: str
    partition: str
    nodes: tuple[str, ...]
    submit: float
    start: float
    end: float
    state: str


@dataclass(frozen=True)
class Claim:
    """One claim of a board, by the proxy node: from, to, and when its board had power and was known to run."""

    board: int
    since: float
    to: float
    power: float
    running: float


@pytest.fixture
def slurm(tmp_path):
    made = Slurm(tmp_path, boards=BOARDS)
    try:
        # a machine that has other work, too, takes minutes for what takes seconds
        more = dict(slurm_options=OPTIONS, slurm_accounting=True, slurm_node_users=USERS, slurm_resume_seconds=1800)
        rc, output = made.set_up(slurm_partitions=PARTITIONS, **more)
        assert rc == 0, output
        made.up()
        people(made, *PEOPLE)
        yield made
    finally:
        made.down()


@contextlib.contextmanager
def each_minute(slurm):
    """Compare Slurm with the nodes each minute, as the timer has it. What it finds may be killed on its way."""
    over = threading.Event()

    def work():
        while not over.wait(60):
            with contextlib.suppress(Exception):
                slurm.sync()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(900)


def states(slurm):
    """Return {job: (state, its nodes)}; none of those that slurmctld has forgotten, five minutes after their end."""
    rc, output = slurm.run("squeue", "-h", "-t", "all", "-o", "%i|%T|%N")
    found = [line.split("|") for line in output.splitlines()] if rc == 0 else []
    return {one: (how, nodes) for one, how, nodes in found}


def again(slurm, jobs):
    """Return those of the jobs that were queued again."""
    rc, output = slurm.run("squeue", "-h", "-t", "all", "-O", "JobID:20,RestartCnt:20")
    counts = dict(line.split() for line in output.splitlines()) if rc == 0 else {}
    return [one for one in jobs if counts.get(one, "0") != "0"]


def when(text):
    return datetime.fromisoformat(text).timestamp() if text[:1].isdigit() else 0.0


def accounted(slurm):
    """Return all runs of all jobs, by sacct."""
    rc, output = slurm.run("sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1days", f"--format={FIELDS}")
    assert rc == 0, output
    found = []
    for line in output.splitlines():
        job, user, partition, nodes, submit, start, end, how = line.split("|")
        names = slurm.run("scontrol", "show", "hostnames", nodes)[1].split() if nodes.startswith("tp64") else []
        times = (when(submit), when(start), when(end))
        found.append(Ran(int(job), user, partition, tuple(names), *times, how.split()[0]))
    return found


def claimed(slurm):
    """Return ({slot: its claims}, slots whose claims last) of the proxy node's own record."""
    ended, lasting = {}, {}
    with contextlib.closing(sqlite3.connect(f"file:{slurm.proxy.state_db}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT time, board, instance, phase, text FROM events ORDER BY id").fetchall()
    for at, board, instance, phase, text in rows:
        if phase == "claim" and text.startswith("claimed for "):
            lasting[instance] = dict(board=board, since=at, power=0.0, running=0.0)
        elif instance in lasting:
            claim = lasting[instance]
            if phase in ("power", "running") and not claim[phase]:
                claim[phase] = at
            elif phase == "release":
                ended.setdefault(instance, []).append(Claim(**lasting.pop(instance), to=at))
    return ended, set(lasting)


def lines(slurm, job):
    """Return when a job's runs wrote their first lines."""
    path = slurm.folder / "lines" / job
    return [float(line) for line in path.read_text().split()] if path.exists() else []


def job(slurm, *words, user, sleep=5):
    return slurm.submit(f"{LINE}; sleep {sleep}", *words, user=user)


def alone(slurm):
    """A job while nobody else wants anything: the time that Slurm and this collection add to a boot."""
    jobs = [job(slurm, user="ann", sleep=0)]
    slurm.until(lambda: lines(slurm, jobs[0]) and claimed(slurm)[0] and not slurm.programs(), 600)
    return jobs


def submitted(slurm):
    """Ann fills all boards and has four more jobs, then bob and cyd come; all thirty but those of the events."""
    jobs = {"alone": alone(slurm), "ann": [job(slurm, user="ann", sleep=WAVE) for _number in range(14)]}
    first = jobs["ann"][:BOARDS]
    slurm.until(lambda: all(lines(slurm, one) for one in first), 1500)
    jobs["gang"] = [job(slurm, "-N4", user="bob")]
    jobs["bob"] = [job(slurm, user="bob") for _number in range(6)]
    jobs["cyd"] = [job(slurm, user="cyd") for _number in range(5)]
    return jobs


def reserved(slurm, jobs):
    """Two boards are cyd's from now on, whoever has them today."""
    words = ["reservationname=cyds", "starttime=now", "duration=120", "users=cyd", "flags=ignore_jobs"]
    said(slurm, "scontrol", "create", "reservation", *words, "nodes=tp64-9,tp64-10")
    jobs["reserved"] = [job(slurm, "--reservation=cyds", user="cyd") for _number in range(2)]
    return time.time()


def preempted(slurm, jobs):
    """An urgent job takes a board from one of ann's."""
    jobs["urgent"] = [job(slurm, "-p", "urgent", user="bob")]
    slurm.until(lambda: again(slurm, jobs["ann"]), 600)
    return again(slurm, jobs["ann"])


def died(slurm, jobs):
    """A board falls silent under a job of ann's. Its outlet stays on: nobody has told it anything."""
    now = states(slurm)
    victim = next(one for one in jobs["ann"] if now.get(one, ("",))[0] == "RUNNING")
    slot = now[victim][1]
    (board,) = [one for one in slurm.boards if one.process and one.name == slot]
    board.die()
    slurm.until(lambda: again(slurm, [victim]), 600)
    return victim, slot


def said(slurm, *words):
    """Run a command on the controller, and print both, as a person sees them there."""
    rc, output = slurm.run(*words)
    print(f"# {' '.join(words)}\n{output}")
    assert rc == 0, output


def test_thirty_jobs_of_three_people_on_ten_boards(slurm):
    """Lost: what people have Slurm for."""
    with each_minute(slurm):
        jobs = submitted(slurm)
        since = reserved(slurm, jobs)
        said(slurm, "squeue", "-o", "%i %u %P %T %N %r")
        taken = preempted(slurm, jobs)
        victim, slot = died(slurm, jobs)
        everyone = [one for some in jobs.values() for one in some]
        assert len(everyone) == 30
        # killed while boards boot for the next ones
        slurm.until(lambda: any("provision_instance" in words for words in slurm.programs().values()), 900)
        # a slurmctld that had not saved it yet would go on with the job of the board that died as one that runs
        slurm.saved(nodename="tp64-10", jobid=victim)
        print(f"killed: slurmctld, {len(slurm.programs())} programs of it\n")
        slurm.kill_all()
        slurm.start_controller()
        until = time.monotonic() + LIMIT
        while _waiting(slurm, everyone) and time.monotonic() < until:
            time.sleep(5)
    slurm.until(lambda: slurm.sync()[0] == 0 and not slurm.programs() and not claimed(slurm)[1], 1800)
    runs, claims = accounted(slurm), claimed(slurm)[0]
    said(slurm, "sshare", "-a", "-o", "Account,User,NormShares,RawUsage,FairShare")
    told = table(slurm, jobs, runs, claims)
    print(f"preempted: {taken}; died under: {victim} on {slot}\n{told}")
    last = {run.job: run for run in sorted(runs, key=lambda run: run.start)}
    assert {last[int(one)].state for one in everyone} == {"COMPLETED"}, told + slurm.words()
    fair(jobs, last)
    counted(slurm, runs)
    kept_free(jobs, runs, since)
    roots_were_new(runs, claims)
    assert victim in [str(run.job) for run in runs if run.state in ("NODE_FAIL", "REQUEUED")], told
    assert len(last[int(jobs["gang"][0])].nodes) == 4, told


def _waiting(slurm, everyone):
    now = states(slurm)
    return [one for one in everyone if now.get(one, ("COMPLETED",))[0] != "COMPLETED"]


def fair(jobs, last):
    """Ann had all boards first, so her four that waited come after those of the others, who asked after her."""
    hers = [last[int(job)].start for job in jobs["ann"][BOARDS:]]
    theirs = sorted(last[int(job)].start for name in ("bob", "cyd") for job in jobs[name])
    assert min(hers) >= theirs[len(theirs) // 2], (hers, theirs)


def counted(slurm, runs):
    """What people used counts for their shares, of short jobs, too. Ann's count from before the kill may be lost."""
    rc, output = slurm.run("sshare", "-a", "-n", "-P", "-o", "User,RawUsage")
    assert rc == 0, output
    used = {user: int(seconds) for user, seconds in (line.split("|") for line in output.split()) if user}
    for name in ("bob", "cyd"):
        most = sum((run.end - run.start) * len(run.nodes) for run in runs if run.user == name)
        assert used[name] >= most / 2, (name, most, output)


def kept_free(jobs, runs, since):
    """None but cyd's began on what is reserved for her."""
    hers = {int(job) for job in jobs["reserved"]}
    there = [run for run in runs if {"tp64-9", "tp64-10"} & set(run.nodes) and run.start > since]
    assert {run.job for run in there if run.end - run.start > 1} <= hers, there
    assert hers <= {run.job for run in there}


def roots_were_new(runs, claims):
    """Each run lies within one claim of each of its slots, and no claim has two runs. sacct counts whole seconds."""
    used = set()
    for run in runs:
        for name in run.nodes if run.state == "COMPLETED" else ():
            found = [one for one in claims.get(name, []) if one.since - 1 <= run.end and run.end - 1 <= one.to]
            assert len(found) == 1, (run, claims.get(name))
            assert (name, found[0]) not in used, run
            used.add((name, found[0]))


def table(slurm, jobs, runs, claims):
    """Return what sacct says of each run, when the proxy node had its claims, and what the first line waited for.

    WAIT is from the submit, as sacct has it, to the claim of a board; MAKE from there to its power, while its root is
    made; BOOT is the board's own, from its power to its answer; LINE is from there to the job's first line.
    """
    begin = min(run.submit for run in runs)
    kinds = {int(one): kind for kind, some in jobs.items() for one in some}

    def at(time_):
        return f"{time_ - begin:5.0f}" if time_ else "    -"

    text = [
        "JOB USER PARTITION KIND     SUBMIT START   END STATE     WAIT+MAKE+BOOT+LINE=FIRST   BOARDS, CLAIMED-FREED"
    ]
    for run in sorted(runs, key=lambda run: (run.start or run.submit, run.job)):
        mine = {
            name: one for name in run.nodes for one in claims.get(name, [])
            if one.since - 1 <= run.end and run.start <= one.to
        }  # fmt: skip
        on = [f"{name}: board{one.board} {at(one.since).strip()}-{at(one.to).strip()}" for name, one in mine.items()]
        words = f"{run.job:3} {run.user:4} {run.partition:9} {kinds.get(run.job, '?'):9}"
        times = f"{at(run.submit)} {at(run.start)} {at(run.end)}"
        text.append(f"{words} {times} {run.state:9} {_first(slurm, run, mine):26} {', '.join(on)}")
    return "\n".join(text)


def _first(slurm, run, claims):
    """Return what a run's first line waited for, in seconds; of a gang, by its last board."""
    found = [line for line in lines(slurm, str(run.job)) if run.start - 2 <= line <= run.end + 2]
    if not found or not claims:
        return "-"
    line, one = found[0], max(claims.values(), key=lambda one: one.running)
    steps = (one.since - run.submit, one.power - one.since, one.running - one.power, line - one.running)
    return f"{'+'.join(f'{step:.1f}' for step in steps)}={line - run.submit:.1f}"
