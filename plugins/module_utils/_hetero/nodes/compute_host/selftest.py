# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host that was set up has what its containers need: LXC, their bridge, the nodes of its GPUs. Looks only."""

from __future__ import annotations

import os

from ...compute_host import gpu_nodes, network
from ...core.errors import HeteroError
from ...hypervisors.lxc.liblxc_calls import Library


def check(bridge: str, gateway: str) -> dict[str, str]:
    """Return facts of the host as it stands; raise HeteroError for the first thing that is not as it should be."""
    version = Library.get().version
    if not os.path.isdir(os.path.join(network.SYS, bridge, "bridge")):
        raise HeteroError("there is no such bridge", bridge, "see: systemctl status hetero-bridge")
    if gateway and not network.stands(bridge, gateway):
        what = f"is not up with address {gateway}, the containers' way out"
        raise HeteroError(what, bridge, "see: systemctl status hetero-bridge")
    for node, why in gpu_nodes.wrong():
        raise HeteroError(why, node.path, "see: systemctl status hetero-gpu-nodes")
    return dict(liblxc=version)
