# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends that were cut off before they removed anything, and leases that are extended then.

If these fail, a tenant who was told that there are hours left gets an empty guest in place of one whose file system is
not mounted, or none.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_disks_in_others_places import (
    disk,
    folder,
    two,
    whose,
)

__all__ = ["two"]


class Killed(BaseException):
    """What ends a verb as SIGKILL does."""


@pytest.fixture
def cut_off(two, monkeypatch):
    """Guest a, whose end was cut off before its first removal."""

    def killed(_work):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "remove", killed)
        with pytest.raises(Killed):
            two.do("absent", "a")
    assert two.info(instance="a")["instances"][0]["state"] == "ending"
    return two


@pytest.mark.parametrize("verb", ["running", "absent"])
@pytest.mark.parametrize("hours", [24, 0])
def test_what_is_not_mounted_after_it_was_extended_is_lost(cut_off, verb, hours):
    """Lost: the disk of a tenant, to a new one in its mount point; and its address, to another one's guest."""
    said = cut_off.do("extended", "a", lease_hours=hours)
    assert "its end, which was cut off before its data were removed, is taken back" in said["lines"][0]["text"]
    assert said["instances"][0]["state"] == "stopped"
    away = cut_off.folder / "not mounted"
    folder(cut_off, "a").rename(away)
    assert "a has run: nothing" in cut_off.do(verb, "a")["msg"]
    away.rename(folder(cut_off, "a"))
    assert cut_off.do("running", "a")["instances"][0]["state"] == "running"
    assert whose(disk(cut_off, "a")) == "a's own"


def test_a_dry_run_takes_nothing_back(cut_off):
    said = cut_off.do("extended", "a", lease_hours=24, check=True)
    assert said["changed"]
    assert cut_off.info(instance="a")["instances"][0]["state"] == "ending"
