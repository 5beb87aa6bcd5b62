# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clone that lies on a guest's disk (virsh vol-create-as default clone.qcow2 10G --format qcow2 --backing-vol
…/a/disk.raw --backing-vol-format raw), and whose domain, which is down, names its disk by pool and volume, as
Terraform's provider writes them. Lost otherwise: all of the clone that it has not written itself, with the end or the
rebuild of the guest; a clone named by its file keeps the guest's disk as well (test_snapshots_and_clones.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_snapshots_and_clones import (
    overlay,
    own,
)

__all__ = ["own"]

POOL = """<pool type='dir'><name>default</name><uuid>22222222-2222-2222-2222-222222222222</uuid><source/>
<target><path>{path}</path></target></pool>
"""
CLONE = """<domain type='qemu'><name>clone</name><uuid>11111111-1111-1111-1111-111111111111</uuid><devices>
<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='default' volume='clone.qcow2'/>
<target dev='vda'/></disk></devices></domain>
"""


@pytest.mark.parametrize(
    ("verb", "options", "is_kept"), [("absent", {}, True), ("rebuilt", {"fresh": True}, True), ("absent", {}, False)]
)
def test_the_disk_below_it_stays(site, own, verb, options, is_kept):
    was = own.stat().st_ino
    pool = site.folder / "pool"
    pool.mkdir()
    overlay(pool / "clone.qcow2", own)
    domains, running = Path(site.virt.paths.domains), Path(site.virt.paths.running_domains)
    storage = (domains if is_kept else running).parent / "storage"
    storage.mkdir(parents=True)
    text = POOL.format(path=pool)
    (storage / "default.xml").write_text(text if is_kept else f"<poolstate>\n{text}</poolstate>\n")
    domains.mkdir(exist_ok=True)
    (domains / "clone.xml").write_text(CLONE)
    said = site.do(verb, "a", **options).get("msg") or ""
    assert own.exists(), "removed, and a domain's volume lies on it"
    assert own.stat().st_ino == was
    assert f"domain clone: has {pool}/clone.qcow2, an overlay on {own}" in said
