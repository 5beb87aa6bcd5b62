# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as facts, which the module gpu_facts and the local fact both return, in JSON's types."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..claims.host.config import CONFIG, config_here
from ..devices.gpus import discovery, processes
from ..devices.gpus.overrides import Overrides
from ..devices.gpus.paths import HERE
from ..hypervisors.lxc_gpus import open_rights

if TYPE_CHECKING:
    from ..devices.gpus.discovery import Gpu
    from ..devices.gpus.nodes import DeviceNode
    from ..devices.gpus.paths import Paths
    from ..devices.gpus.processes import Number, Process

#: Fields of a GPU that are facts as they are; nodes, holders and processes are put together below.
PLAIN = (
    "address", "uuid", "minor", "index", "vendor", "device_id", "model", "arch", "driver", "driver_version",
    "numa_node", "iommu_group", "healthy", "why_unhealthy", "unsupported", "note",
)  # fmt: skip


def look(config: str = CONFIG, overrides: Mapping[str, Any] | None = None, paths: Paths = HERE) -> dict[str, Any]:
    """Return the facts of this machine's GPUs, and those that concern all of them.

    :param config: path of the host's configuration, which a machine that was not set up lacks.
    :param overrides: the operator's words about GPUs besides those in the configuration, over which they win.
    """
    settings = config_here(config).lxc
    for given in (settings.gpu_overrides, overrides):
        Overrides(given)  # check each set by itself, before they are merged
    found = discovery.find({**settings.gpu_overrides, **(overrides or {})}, paths)
    users = processes.holders([node.number for gpu in found.gpus for node in open_rights.own_nodes(gpu)], paths)
    holders = open_rights.live_holders(found.gpus, [settings.lxcpath], users)
    return dict(
        gpus=[_facts(gpu, holders[gpu.address], users) for gpu in found.gpus],
        shared=[_node(node) for node in found.shared],
        driver_version=found.driver_version,
        unsupported=found.unsupported,
        unused_overrides=found.unused_overrides,
    )


def _facts(
    gpu: Gpu, holders: Sequence[open_rights.Holder], users: Mapping[Number, Sequence[Process]]
) -> dict[str, Any]:
    by_pid = {process.pid: process for node in open_rights.own_nodes(gpu) for process in users.get(node.number, ())}
    return dict(
        {name: getattr(gpu, name) for name in PLAIN},
        nodes=[_node(node) for node in gpu.nodes],
        drm_nodes=[_node(node) for node in gpu.drm_nodes],
        holder=", ".join(holder.name for holder in holders) or None,
        holders=[asdict(holder) for holder in holders],
        processes=[asdict(by_pid[pid]) for pid in sorted(by_pid)],
    )


def _node(node: DeviceNode) -> dict[str, Any]:
    return dict(asdict(node), mode=None if node.mode is None else f"{node.mode:04o}")
