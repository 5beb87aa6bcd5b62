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

from looks import EACH, Looks, now
from site_file import SiteError
from slots import Slots

if TYPE_CHECKING:
    from controller import Controller
    from site_file import Site


def prolog(site: Site, controller: Controller, environment: Mapping[str, str]) -> None:
    """Let a job begin only on nodes that end with it, where its partition wants that, and as soon as they are up.

    :raises SiteError: a node may have been used, or another's login is there; Slurm queues a batch job again, and ends
        another.
    """
    names = _names(site, controller, environment)
    new = environment.get("SLURM_JOB_PARTITION", "") in site.new_root
    nodes = controller.some(names) if names and new else {}
    used = [name for name, node in nodes.items() if node.up and not node.told_to_go]
    if used:
        tell_to_go(site, controller, used)
        job, told = environment.get("SLURM_JOB_ID", ""), ", ".join(used)
        raise SiteError(f"job {job}: the roots of {told} may have been used: they end, and the job begins elsewhere")
    with contextlib.suppress(SiteError):  # it begins all the same
        _until_up(site, controller, names)
        # Where no suspend of these slots ever runs to its first step, the next resume ends what this job leaves.
        nodes = controller.some(names) if names else {}
        Slots(site.folder).spend(name for name, node in nodes.items() if node.up)
    _no_other_login(site, names, environment.get("SLURM_JOB_ID", ""))


def _no_other_login(site: Site, names: Sequence[str], job: str) -> None:
    """Refuse roots in which the user of another job has a login: Slurm gives a node that still comes up for a job that
    was cancelled to the next one, and begins no resume for it (22.05).
    """
    slots = Slots(site.folder)
    others = [name for name in names if slots.lent(name) not in ("", job)]
    if others:
        slots.spend(others)
        raise SiteError(f"job {job}: another job's user has a login on {', '.join(others)}: the job begins elsewhere")


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
