# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs on KVM guests that were killed in their middle. If these fail, a tenant's disk goes with the next verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork, Running
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at


def test_what_ran_under_a_killed_request_is_not_taken_back(site):
    """Lost: a tenant's disk, for the request was killed as it waited for ssh, and it is silent when it is run again."""
    killed_at(GuestWork, "answer", lambda: site.provision("ml-9"))
    disk = site.folder / "guests-files/ml-9/disk.raw"
    (site.virt.root / "mute").write_text("")
    site.virt.domain("ml-9").stop()
    assert site.provision("ml-9", timeout=3)["failed"]
    assert disk.exists()


@pytest.mark.parametrize("verb", ["stopped", "rebooted"])
def test_a_stop_that_was_cut_off_is_no_end_that_was_begun(site, verb):
    """Lost: the same, where the guest's description is gone after a stop that was killed: start made a new disk."""
    site.provision("ml-9")
    disk = site.folder / "guests-files/ml-9/disk.raw"
    with open(disk, "r+b") as file:
        file.seek(3 << 20)
        file.write(b"a week of work")
    killed_at(Running, "shutdown", lambda: site.do(verb, "ml-9"))
    site.virt.domain("ml-9").stop()
    path = site.folder / "guests-files/ml-9/domain.xml"
    path.rename(path.with_name("away"))
    assert "nothing is made in its place" in site.do("running", "ml-9")["msg"]
    with open(disk, "rb") as file:
        file.seek(3 << 20)
        assert file.read(14) == b"a week of work"


@pytest.mark.parametrize("record", ["says so", "is newer"])
def test_a_rebuild_that_was_cut_off_is_ended_unless_its_record_says_that_it_was(site, record):
    """Lost: that the old key opens it no more; or the new disk, by a database of before the rebuild ended."""
    site.provision("ml-9")
    disk = site.folder / "guests-files/ml-9/disk.raw"
    with open(disk, "r+b") as file:
        file.seek(3 << 20)
        file.write(b"a week of work")
    killed_at(guests, "remove", lambda: site.do("rebuilt", "ml-9", ssh_public_key=OTHER_KEY))
    if record == "is newer":
        with site.host() as host:
            path = Path(host.store.records.path("ml-9"))
        written = json.loads(path.read_text())
        assert written["image_hash"] == ""
        path.write_text(json.dumps(dict(written, image_hash="ab" * 32)))
    site.do("running", "ml-9")
    with open(disk, "rb") as file:
        file.seek(3 << 20)
        assert (file.read(14) == b"a week of work") is (record == "is newer")
