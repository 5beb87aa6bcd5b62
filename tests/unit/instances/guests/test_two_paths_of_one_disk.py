# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of guests on a bigger disk, which the configuration names since, and which is bound to its former path,
so that all that is there goes on. A guest's domain names its own disk by that path. Lost: its end and its lease's, for
that was taken for another disk; and the word of a reconcile, which printed a line that moves a disk over itself.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, found


@pytest.fixture
def bound(site):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    old, new = site.folder / "guests-files", site.folder / "bigger"
    old.rename(new)
    old.mkdir()
    subprocess.run(["mount", "--bind", new, old], check=True)
    site.configure(guests_folder=str(new))
    yield site
    subprocess.run(["umount", "-l", old], check=True)


def test_it_is_its_own(bound):
    assert found(bound) == []


@pytest.mark.parametrize(("verb", "options"), [("absent", {}), ("rebuilt", {"fresh": True})])
def test_it_is_ended(bound, verb, options):
    assert bound.do(verb, "a", **options).get("msg") is None
