# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU is given by hand to a container that somebody made in the bare mount point of the folder of containers. If
these fail, the mark that this writes there is taken for a sign that the file system is mounted, and instances are made
under it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


def attach(site, name):
    with site.host() as host:
        return attachment.attach(host.site, site.container(name), GpuRequest(1), Change(), Deadline(60.0))


def one_stopped(site):
    site.claim("c1", flavor=SMALL)
    site.up("c1")
    site.do(lifecycle.stopped, "c1")


def unmount(site):
    """Have another container than the claims' lie in the bare mount point."""
    disks.unmount(site.container("c1"), site.here.disks)
    site.lxcpath.rename(site.folder / "away")
    folder = site.lxcpath / "old"
    (folder / "rootfs").mkdir(parents=True)
    site.lxcpath.chmod(0o711)
    (folder / "config").write_text(f"lxc.uts.name = old\nlxc.rootfs.path = dir:{folder}/rootfs\n")


def test_no_gpu_is_given_where_the_containers_of_claims_are_not_to_be_seen(site):
    """Lost: the sign that the file system of the folder is not mounted, though no container has a GPU yet."""
    one_stopped(site)
    unmount(site)
    with pytest.raises(Refused, match="c1 was made in it: its file system may not be mounted"):
        attach(site, "old")
    site.claim("c2", flavor=SMALL)
    assert "may not be mounted" in (site.up("c2").get("msg") or "")
    assert not (site.lxcpath / "c2").exists()


def test_one_is_given_where_the_mark_was_removed_and_a_container_is_there(site):
    """Lost: GPUs by hand, on a host that shows which folder it is."""
    one_stopped(site)
    (site.lxcpath / "hetero.containers").unlink()
    assert attach(site, "c1")["changed"]
    assert (site.lxcpath / "hetero.containers").exists()


@pytest.mark.parametrize("check", [False, True])
def test_reconcile_of_an_upgraded_host_knows_its_folder_at_the_next_outage(site, check):
    """Lost: what keeps others out of a folder that is not mounted, until somebody is given a GPU."""
    one_stopped(site)
    with site.host() as host:
        kept = host.store.marked()
        assert list(kept) == [str(site.lxcpath)]
        for path in site.folder.rglob("host.folders"):
            path.unlink()
        assert host.store.marked() == {}
        reconcile(host, Change(check), 5.0)
        assert host.store.marked() == ({} if check else kept)
