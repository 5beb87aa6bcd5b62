# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PrologSlurmctld: a job of a partition whose roots are new begins on nodes that no job before it had.

`resume` tells such nodes, while they come up, to go down when they are idle, so none takes a second job. slurmctld may
have been killed before it had saved that. A node that is up and was not told so may have been used: it is told now, and
the job goes back to the queue.

It lasts until the job's nodes are up, for Slurm begins a batch job as this program ends. It would look for that itself
each 30 seconds only (22.05, src/slurmctld: job_mgr.c, job_time_limit).
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Mapping, Sequence

import stand_in
from looks import EACH, Looks, now
from site_file import SiteError
from slots import Slots

if TYPE_CHECKING:
    from controller import Controller, Node
    from site_file import Site

ELSEWHERE = "the job begins elsewhere"
AT_WORK = "another program worked on this slot all the time: see hetero-slurm.log"


def prolog(site: Site, controller: Controller, environment: Mapping[str, str]) -> None:
    """Let a job begin only on nodes that end with it, where its partition wants that, and as soon as they are up.

    :raises SiteError: a node may have been used, or another's login is there; Slurm queues a batch job again, and ends
        another.
    """
    names, slots = _names(site, controller, environment), Slots(site.folder)
    new = environment.get("SLURM_JOB_PARTITION", "") in site.new_root
    nodes = controller.some(names) if names and new else {}
    used = [name for name, node in nodes.items() if node.up and not node.told_to_go]
    if used:
        tell_to_go(site, controller, used)
        job, told = environment.get("SLURM_JOB_ID", ""), ", ".join(used)
        raise SiteError(f"job {job}: the roots of {told} may have been used: they end, and {ELSEWHERE}")
    with contextlib.suppress(SiteError):  # it begins all the same
        _until_up(site, controller, names)
        # Where no suspend of these slots ever runs to its first step, the next resume ends what this job leaves.
        nodes = controller.some(names) if names else {}
        slots.spend(name for name, node in nodes.items() if node.up)
    own = [name for name in names if slots.lent(name) or not site.slot(name)[0].slurmd]
    if own:
        _its_login_alone(site, controller, slots, own, environment.get("SLURM_JOB_ID", ""))


def _its_login_alone(site: Site, controller: Controller, slots: Slots, names: Sequence[str], job: str) -> None:
    """Have a job's user have a login in its roots that run no slurmd, and refuse those in which another's has one.

    Slurm gives a node that still comes up for a job that was cancelled to the next one, and begins no resume for it
    (22.05): its login is another's then, or nobody's. A resume that is at it yet ends first.
    """
    with slots.held(names, site.resume_seconds) as had:
        others = [name for name in had if slots.lent(name) not in ("", job)]
        if others:
            slots.spend(others)
            raise SiteError(f"job {job}: another job's user has a login on {', '.join(others)}: {ELSEWHERE}")
        if len(had) < len(names):
            raise SiteError(f"job {job}: {', '.join(sorted(set(names) - set(had)))}: {AT_WORK}")
        without = [name for name in names if not slots.lent(name)]
        nodes = controller.some(without) if without else {}
        for node in nodes.values():
            if node.up:
                _let_in(site, controller, slots, node, job)


def _let_in(site: Site, controller: Controller, slots: Slots, node: Node, job: str) -> None:
    """Give a job's user a board that came up for nobody; where the user has no key, the slot's comment says so."""
    jobs = controller.jobs_on(node.name)
    if job not in [one.number for one in jobs]:
        raise SiteError(f"job {job}: it does not have {node.name} any more")
    try:
        way = stand_in.let_in(site, slots, node.name, jobs)
    except (SiteError, OSError) as error:
        slots.spend([node.name])
        raise SiteError(f"job {job}: {error}: {ELSEWHERE}") from error
    controller.note([node.name], f"{node.comment.partition(': ')[0] or node.name}: {way}")
    logging.info("%s came up for nobody: job %s has it, and its user's login", node.name, job)


def _until_up(site: Site, controller: Controller, names: Sequence[str]) -> None:
    """Wait until a job's nodes are up, or it has them no more, for as long as Slurm does."""
    looks, until = Looks(site.folder, controller), now() + site.resume_seconds
    while names and now() < until:
        awaited = looks.awaited()
        if awaited is not None and not set(names).intersection(awaited):
            return
        time.sleep(EACH)


def tell_to_go(site: Site, controller: Controller, names: Sequence[str]) -> None:
    """Have nodes take no second job, and go down when they are idle. The root of one that is up is used.

    Slurm plans with such a node until then, and lets jobs of a higher priority preempt its job. With power_down_asap it
    would do neither, and a node that is off would never come (22.05, src/slurmctld: node_mgr.c, update_node).
    """
    nodes = controller.some(names) if names else {}
    Slots(site.folder).spend(name for name, node in nodes.items() if node.up)
    left = [name for name, node in nodes.items() if not node.told_to_go]
    if left:
        controller.set(left, "power_down")
        logging.info("%s: told to go down when idle", ", ".join(left))


def _names(site: Site, controller: Controller, environment: Mapping[str, str]) -> list[str]:
    """Return the job's slots."""
    hostlist = environment.get("SLURM_JOB_NODELIST", "")
    return site.known(controller.names(hostlist))[0] if hostlist else []
