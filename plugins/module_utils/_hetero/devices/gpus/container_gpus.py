# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes that a container gets with its GPUs: their own, and those that all GPUs share.

claims/host/allocation.py decides which GPUs it may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Collection, Iterable, cast

from ...core.errors import Refused
from ...core.plays import play
from .nodes import DeviceNode

if TYPE_CHECKING:
    from ...claims.host.allocation import Allocation
    from .discovery import Found, Gpu

#: Nodes of the display driver, which programs that only compute do not need.
OPTIONAL = ("/dev/nvidia-modeset",)


def nodes_for(found: Found, gpus: Collection[Gpu]) -> list[DeviceNode]:
    """Return the nodes of these GPUs, and the shared ones that this host has; none without GPUs.

    :raises Refused: a node is not right on the host, so that a container would get less than it needs.
    """
    if not gpus:
        return []
    own = [node for gpu in gpus for node in gpu.nodes]
    wanted = own + [node for node in found.shared if node.major is not None]
    for node in wanted:
        if not node.present and node.path not in OPTIONAL:
            raise Refused(cast("str", node.why_absent), node.path, f"or run {play('gpu_host')}")
    return [node for node in wanted if node.present]


def closing_nodes(
    found: Found, gpus: Iterable[Gpu], rows: Iterable[Allocation], kept: Collection[Gpu]
) -> list[DeviceNode]:
    """Return the nodes to close with these GPUs and rows, without those that the kept GPUs need.

    :param rows: allocations. The GPU of one may be gone, and another GPU may have its number now.
    :param kept: GPUs that the container keeps; without any the shared nodes are closed too.
    """
    wanted = {node.number: node for gpu in gpus for node in gpu.nodes}
    for path, kind, major, minor in (node for row in rows for node in row.nodes):
        wanted.setdefault((kind, major, minor), DeviceNode(path, kind, major, minor))
    if not kept:
        wanted.update((node.number, node) for node in found.shared if node.major is not None)
    needed = {node.number for gpu in kept for node in gpu.nodes}
    return [node for number, node in wanted.items() if number not in needed]
