# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that a libvirt domain starts with (managed), and that is on the host's own driver while that domain is down.
Its operator renamed the domain (virsh domrename) after module libvirt_hostdev gave it the GPU; or put an older table
back; or attached it by virsh. A guest's request leaves such a device alone ("domain win would start with it"); that of
a container frees its allocation and takes it. Lost: the GPU: a container has it, and the domain at its next start, for
which libvirt takes it off its driver.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

DOMAIN = """<domain type='kvm'><name>win</name><uuid>11111111-1111-1111-1111-111111111111</uuid><devices>
<hostdev mode='subsystem' type='pci' managed='yes'>
<source><address domain='0x0000' bus='0x05' slot='0x00' function='0x0'/></source></hostdev>
</devices></domain>
"""


@pytest.fixture
def domain(host, tmp_path, monkeypatch):
    """A function that has libvirt define the domain; it returns the path of its file."""
    places = below(str(tmp_path / "libvirt"))
    site = type(host).site
    monkeypatch.setattr(type(host), "site", lambda self, store: replace(site(self, store), pci=places))

    def define():
        os.makedirs(places.domains)
        path = Path(places.domains, "win.xml")
        path.write_text(DOMAIN)
        return path

    return define


@pytest.mark.parametrize("row", ["renamed since", "none"])
def test_it_is_given_to_no_container(host, domain, row):
    path = domain()
    if row == "renamed since":
        with Store(host.state_db) as store, store.transaction():
            wanted = GpuRequest(gpus=(ADDRESSES[0],))
            row = Allocation(ADDRESSES[0], "domain:sim", None, False, ATTACHED, 1.0, wanted, method="libvirt:nvidia")
            store.grant(row)
    box = host.boxes.make(name="box", start=False)
    with pytest.raises(NoneFree, match="domain win would start with it"):
        host.attach(box, gpus=ADDRESSES[:1])
    assert [gpu["address"] for gpu in host.attach(box, count=3)["gpus"]] == ADDRESSES[1:]
    with pytest.raises(NoneFree, match="domain win would start with it"):
        host.attach(box, count=4)
    path.unlink()
    assert host.attach(box, count=4)["changed"]


def test_a_container_keeps_what_it_has(host, domain):
    """Its operator gave the domain the same GPU by virsh: the container starts as before."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    domain()
    assert not host.attach(box, gpus=ADDRESSES[:1])["changed"]
