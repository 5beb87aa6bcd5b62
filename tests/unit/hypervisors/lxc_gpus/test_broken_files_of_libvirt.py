# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of libvirt's that a power cut left empty, or of zeros, which libvirt passes over
(virDomainObjListLoadAllConfigs). If this fails, no container on that host gets a further GPU.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.mark.parametrize("left", ["", "\0" * 4096], ids=["empty", "zeros"])
def test_gpus_are_given_all_the_same(host, tmp_path, monkeypatch, left):
    places = below(str(tmp_path / "libvirt"))
    site = type(host).site
    monkeypatch.setattr(type(host), "site", lambda self, store: replace(site(self, store), pci=places))
    os.makedirs(places.domains)
    Path(places.domains, "old.xml").write_text(left)
    box = host.boxes.make(name="box", start=False)
    assert host.attach(box, gpus=ADDRESSES[:1])["changed"]
