# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clone that lies on a guest's disk is a pool's volume, and its domain, which is down, names it by pool and volume.
The pool's file was left empty by a power cut, or the pool was a transient one (virsh pool-create-as) and the host was
restarted: where the volume lies, no file says. Lost: all of the clone that it has not written itself, with the end or
the rebuild of the guest, which takes a disk that it cannot look at for one that does not lie on the guest's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_clones_in_pools import CLONE, POOL
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_snapshots_and_clones import overlay, own

__all__ = ["own"]


@pytest.mark.parametrize("pool_file", ["empty", "gone"])
@pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])
def test_the_disk_below_it_stays(site, own, verb, options, pool_file):
    was = own.stat().st_ino
    pool = site.folder / "pool"
    pool.mkdir()
    overlay(pool / "clone.qcow2", own)
    domains = Path(site.virt.paths.domains)
    storage = domains.parent / "storage"
    storage.mkdir(parents=True)
    if pool_file == "empty":
        (storage / "default.xml").write_text("")
    domains.mkdir(exist_ok=True)
    (domains / "clone.xml").write_text(CLONE)
    said = site.do(verb, "a", **options).get("msg") or ""
    assert own.exists(), "removed, and a domain's volume lies on it"
    assert own.stat().st_ino == was
    assert "domain clone: has volume clone.qcow2 of pool default, of which libvirt has no description" in said
    assert not site.do("rebooted", "a", how="hard").get("failed"), "what removes nothing is not refused"
    (storage / "default.xml").write_text(POOL.format(path=site.folder / "elsewhere"))  # as the remedy has it made
    assert not site.do(verb, "a", **options).get("failed")
