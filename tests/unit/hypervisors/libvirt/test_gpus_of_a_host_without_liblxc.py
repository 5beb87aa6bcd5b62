# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A KVM host without package lxc, on which a container of Incus or LXD runs (these bring a liblxc of their own), or
which has an empty /var/lib/lxc left. If this fails, pci_driver binds no GPU to vfio-pci there: it asks for liblxc.

Tests compute_host/gpu_site.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.gpu_site import gpus_of_containers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import liblxc_calls, monitors
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.test_older_tables_and_containers_gpus import (
    GPU,
    bare,
    bound,
    boxes,
    four,
    kvm,
)

__all__ = ["bare", "boxes", "four", "kvm"]


@pytest.fixture(autouse=True)
def without(monkeypatch):
    monkeypatch.setattr(liblxc_calls, "LIBRARY", "liblxc-that-is-not-there.so.1")
    monkeypatch.setattr(liblxc_calls.Library, "_loaded", None)


def test_a_gpu_is_bound_where_another_liblxcs_container_runs(kvm, monkeypatch):
    monkeypatch.setattr(monitors, "of_root", lambda: {("/var/lib/incus/containers", "c1")})
    assert bound(kvm)["devices"][0]["after"] == "vfio-pci"


def test_a_folder_without_containers_keeps_none(kvm, tmp_path, monkeypatch):
    monkeypatch.setattr(monitors, "of_root", set)
    (tmp_path / "containers" / "left").mkdir(parents=True)
    config = tmp_path / "host.json"
    config.write_text(json.dumps({"lxcpath": str(tmp_path / "containers")}))
    with kvm.store() as store:
        assert gpus_of_containers(store, kvm.paths, [GPU], str(config)) == {}
