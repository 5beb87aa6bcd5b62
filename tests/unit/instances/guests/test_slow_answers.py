# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt that is slow to answer, such as on a busy host."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change


def test_who_waits_for_no_other_verb_looks_at_a_guest_all_the_same(site):
    """Lost: the look. The time for which another verb is waited for was all that libvirt had for its answers, and the
    waiting was taken from it.
    """
    site.provision("ml-8")
    virsh, slow = site.virt.root / "programs/virsh", site.virt.root / "slow"
    played = virsh.rename(virsh.with_name("virsh-played"))
    virsh.write_text(f'#!/bin/sh\nrm {slow} 2>/dev/null && sleep 1.5\nexec {played} "$@"\n')
    virsh.chmod(0o755)
    slow.touch()
    with site.host() as host:
        found = reconcile(host, Change(), 0.0)
    assert not slow.exists()
    assert (found["unseen"], found["instances"][0]["found"]) == ([], [])
