# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file is empty after a power cut, or names none of the boards in use. If these fail, the NFS server starts
without any export: boards at work, which would have waited for it, get errors for their roots.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore as restore_module
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore import provisioned, restart, restored
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore_unmounted import ran

__all__ = ["provisioned", "ran"]

OTHER = "7 10.0.2.8 00:1a:ca:00:57:97 10 16218 917 476 1 tilera_hv 1 {}\n"


@pytest.mark.parametrize("rows", ["", "# boards\n", OTHER])
def test_the_server_does_not_start_without_any_export(site, ran, rows):
    """Lost: what runs from roots that are all there."""
    files = dict(
        boards_file=str(site.folder / "tilera_boards"),
        config=str(site.folder / "proxy.json"),
        state_db=ran.store.path,
    )
    with restore_module._node(files) as (proxy, lost):
        assert len(restored(proxy)[0]) == 2, lost
    restart(site)
    (site.folder / "tilera_boards").write_text(rows)
    with pytest.raises(HeteroError), restore_module._node(files) as (proxy, lost):
        restore_module.restore(proxy, print, lost)


def test_it_starts_once_the_claims_of_boards_that_are_gone_for_good_are_ended(site, ran):
    """Lost: the way out that is printed, and with it the NFS server of a node whose boards were all replaced."""
    (site.folder / "tilera_boards").write_text(OTHER)
    with site.proxy() as proxy:
        with pytest.raises(Refused, match="forget=NAME") as error:
            restore_module.restore(proxy, print)
        assert all(f"board{claim.board} of {claim.instance}" in str(error.value) for claim in proxy.store.claims())
        for claim in proxy.store.claims():
            proxy.store.forget(claim, "a test")
        assert restore_module.restore(proxy, print) == []
