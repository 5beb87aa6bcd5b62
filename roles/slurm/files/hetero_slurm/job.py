# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PrologSlurmctld: a job of a partition whose roots are new begins on nodes that no job before it had.

`resume` tells such nodes, while they come up, to go down when they are idle, so none takes a second job. slurmctld may
have been killed before it had saved that. A node that is up and was not told so may have been used: it is told now, and
the job goes back to the queue.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Mapping, Sequence

from site_file import SiteError
from slots import Slots

if TYPE_CHECKING:
    from controller import Controller
    from site_file import Site


def prolog(site: Site, controller: Controller, environment: Mapping[str, str]) -> None:
    """Let a job begin only on nodes that end with it, where its partition wants that.

    :raises SiteError: a node may have been used; Slurm queues a batch job again, and ends another.
    """
    names = _names(site, controller, environment)
    nodes = controller.some(names) if names else {}
    used = [name for name, node in nodes.items() if node.up and not node.told_to_go]
    if used:
        tell_to_go(site, controller, used)
        job, told = environment.get("SLURM_JOB_ID", ""), ", ".join(used)
        raise SiteError(f"job {job}: the roots of {told} may have been used: they end, and the job begins elsewhere")


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
    """Return the job's slots, where its partition wants new roots."""
    if environment.get("SLURM_JOB_PARTITION", "") not in site.new_root or not environment.get("SLURM_JOB_NODELIST"):
        return []
    return site.known(controller.names(environment["SLURM_JOB_NODELIST"]))[0]
