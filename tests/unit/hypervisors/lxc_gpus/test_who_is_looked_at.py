# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a reconcile of GPUs looks at. Real containers are in attaching/test_reconciling.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import gpu_reconciliation


def test_containers_that_run_and_those_that_hold_a_gpu_while_they_are_off(monkeypatch):
    """Lost: what is wrong with a container that is off, until its next start fails; guests are libvirt's."""
    monkeypatch.setattr(gpu_reconciliation.liblxc, "running", {"/var/lib/lxc": ["c1", "c2"], "/srv/lxc": []}.get)
    monkeypatch.setattr(gpu_reconciliation.liblxc, "Container", lambda name, lxcpath: (lxcpath, name))
    holders = ["/var/lib/lxc/c2#id2", "/srv/lxc/with#sign#id3", "kvm:vm1", "instance:ml-8"]
    rows = [SimpleNamespace(holder=holder) for holder in holders]
    store = SimpleNamespace(allocations=lambda: rows)
    found = gpu_reconciliation._containers(SimpleNamespace(lxcpaths=["/var/lib/lxc", "/srv/lxc"], store=store))
    assert found == [("/srv/lxc", "with#sign"), ("/var/lib/lxc", "c1"), ("/var/lib/lxc", "c2")]
