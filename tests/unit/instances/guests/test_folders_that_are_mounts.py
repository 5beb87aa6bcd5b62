# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose own folder is a mount point, say as somebody has bound a bigger disk there."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.reap import reap
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


@pytest.fixture
def bound(site):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    folder, big = site.folder / "guests-files/a", site.folder / "big"
    folder.rename(big)
    folder.mkdir()
    subprocess.run(["mount", "--bind", big, folder], check=True)
    yield site
    if os.path.ismount(folder) or big.stat().st_ino == (folder.stat().st_ino if folder.exists() else None):
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])
def test_its_end_goes_on_as_printed(bound, verb, options):
    """Lost: each way to end it: unmounted, it was said to be missing, and to be mounted again."""
    before = bound.files("a")
    said = bound.do(verb, "a", **options)["msg"]
    assert bound.files("a") == before
    assert followed(said)
    done = bound.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
    assert "What was mounted there stays as it is, for a person to remove" in said


def test_the_reaper_says_once_why_it_is_not_ended(bound):
    """Lost: the events of an instance, among those that each turn of the reaper adds."""
    with bound.host() as host:
        host.store.put("a", expires=1.0)
        before = len(host.store.events(instance="a"))
        said = []
        for _turn in range(3):
            assert not reap(host, said.append)
        assert len(said) == 3
        assert [event.phase for event in host.store.events(instance="a")[before:]] == ["error"]
