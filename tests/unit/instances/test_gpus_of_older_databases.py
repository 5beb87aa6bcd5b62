# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of containers that are down, on a host whose database is older than they are. If these fail, a GPU is given to a
second instance, and the first has it open as well when it is started.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE


def test_a_gpu_that_a_container_has_by_its_own_file_is_given_to_nobody(site):
    """Lost: that b alone has its GPUs, where the database was put back from before b was claimed."""
    site.claim("a", flavor=ONE)
    copy = shutil.copy(site.database, site.folder / "copy.db")
    site.claim("b", flavor=dict(ONE, extra_specs={"hypervisor": "s== LXC", "gpus": "= 3"}), owner="bo")
    assert not site.up("b").get("failed")
    site.do(lifecycle.stopped, "b")
    for more in ("", "-wal", "-shm"):
        (site.folder / f"state/host.db{more}").unlink(missing_ok=True)
    shutil.copy(copy, site.database)
    with pytest.raises(NoneFree, match="container b can open it, nobody allocated it"):
        site.claim("c", flavor=ONE, owner="eve")
