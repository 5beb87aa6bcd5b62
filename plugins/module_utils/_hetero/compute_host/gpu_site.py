# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the Site for giving GPUs from a module's options and the host's configuration; without one, from defaults.

hypervisors/lxc_gpus/attachment.py and hypervisors/lxc_gpus/gpu_reconciliation.py use it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Collection, Iterator, Mapping

from ..claims.host.allocation import RECONCILE
from ..claims.host.config import CONFIG, config_here
from ..claims.host.store import Store
from ..devices.gpus import discovery
from ..devices.pci import paths as pci_paths
from ..hypervisors.lxc_gpus.open_rights import DOUBT, OPEN, look
from ..hypervisors.lxc_gpus.own_files import by_files, folders_in
from ..hypervisors.lxc_gpus.site import Site
from .lost_database import must_not_be_lost_here

#: Of a GPU that the table, which may be older, gives to nobody.
HAS = f"container {{far.container}} has it {{far.why}}: {RECONCILE}"
CAN_OPEN = f"container {{far.container}} can open it ({{far.why}}): {RECONCILE}"
#: Seconds to wait for others' transactions on the table.
BUSY = 30.0


def gpus_of_containers(
    store: Store, paths: pci_paths.Paths, addresses: Collection[str], config: str = CONFIG
) -> dict[str, str]:
    """Return {address of a GPU: in words, which container can open it, by the kernel, or has it, or may have it, by its
    own file and not by the table, which may be older}. Where no GPU is asked for, no container is looked at.

    :param addresses: of the devices that are asked for.
    """
    found = discovery.find(paths=paths)
    gpus = [gpu for gpu in found.gpus if gpu.address in addresses]
    if not gpus:
        return {}
    lxcpaths = {os.path.normpath(config_here(config).lxc.lxcpath), *folders_in(store), *store.marked()}
    site = Site(store, found, tuple(sorted(lxcpaths)), pci=paths)
    # of each container only what it has: one that may open all devices, and has no GPU's node, uses none
    running = look((), gpus).reaches if any(gpu.nodes for gpu in gpus) else ()
    can_open = {far.address: CAN_OPEN.format(far=far) for far in running if far.state == OPEN}
    files = {far.address: far.why if far.state == DOUBT else HAS.format(far=far) for far in by_files(site)}
    return {**can_open, **files}


@contextmanager
def gpu_site(params: Mapping[str, Any], create: bool, lost: bool = False) -> Iterator[Site]:
    """Yield the Site of options `config`, `state_db`, `lxcpath` and `overrides`, with its store open for the block.

    :param params: a module's options.
    :param create: with False no database is made (check mode).
    :param lost: whether the caller makes a lost database anew (reconcile).
    :raises HeteroError: the host's database is lost.
    """
    if not lost:
        must_not_be_lost_here(params["config"], params["state_db"], params["lxcpath"])
    config = config_here(params["config"])
    path = params["state_db"] or config.state_db
    overrides = config.lxc.gpu_overrides if params["overrides"] is None else params["overrides"]
    lxcpath = params["lxcpath"] or config.lxc.lxcpath
    found = discovery.find(overrides)
    # Many may ask at the same moment; each looks at all running containers inside its transaction (1 ms each).
    with Store(path, create=create, busy=BUSY) as store:
        pci = pci_paths.here(path, params["config"])
        yield Site(store, found, (os.path.normpath(lxcpath),), config.run_folder, pci=pci)
