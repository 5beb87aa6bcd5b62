# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was upgraded, whose mark in the folder of containers has no id yet, and whose file system of containers
is full. Lost: reconcile of all instances, and of GPUs, and what the GPUs' restore at boot says of each container: an
OSError, as the mark is to get its id.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    gpu_reconciliation,
    restoration,
)
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE


@pytest.mark.parametrize("verb", ["reconcile", "gpu_reconcile", "restore"])
def test_it_is_looked_at(site, verb):
    site.lxcpath.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "none", site.lxcpath], check=True)
    try:
        site.claim(flavor=ONE)
        assert not site.up().get("failed")
        site.do(lifecycle.stopped)
        (site.lxcpath / "hetero.containers").write_text("Containers of hetero.compute were made in this folder.\n")
        with open(f"{site.settings['state_folder']}/host.folders", "w", encoding="utf-8") as file:
            file.write(f"{site.lxcpath}\n")
        subprocess.run(["dd", "if=/dev/zero", f"of={site.lxcpath}/fill", "bs=4k"], check=False, capture_output=True)
        with site.host() as host:
            if verb == "reconcile":
                assert len(reconcile(host, Change(False), 60.0)["instances"]) == 1
            elif verb == "gpu_reconcile":
                gpu_reconciliation.reconcile(host.site, True, Change(False), Deadline(60.0))
            else:
                assert list(restoration.restore(host.site)) == ["ml-8"]
            assert host.store.marked() == {str(site.lxcpath): None}
            (site.lxcpath / "fill").unlink()
            identity.note_marks(host.site.lxcpaths, host.store)
            assert host.store.marked()[str(site.lxcpath)]
    finally:
        subprocess.run(f"umount -l {site.lxcpath}/*/rootfs; umount -l {site.lxcpath}", shell=True, check=False)
