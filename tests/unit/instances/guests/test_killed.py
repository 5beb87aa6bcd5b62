# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs on guests killed anywhere (kill -9), and run again: they converge, and nothing is left behind or held twice."""

from __future__ import annotations

import os
import select
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, OTHER

#: At which command to libvirt, and before or after it is done; between two of them lies every other step.
FEW = in_turns(["2-after", "5-before", "9-after"], 3)
ALL = [f"{number}-{when}" for number in range(1, 24) for when in ("before", "after")]


def killed(site, point, work):
    """`work` in a process of its own, killed at that point; whether it was."""
    (site.folder / "kill-at").write_text(point)
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    (site.folder / "kill-at").unlink(missing_ok=True)
    return os.WIFSIGNALED(status)


def life(site, point):
    """Provisioned and given back, both killed once and run again; whether any of it was killed."""
    first = killed(site, point, lambda: site.provision("ml-9"))
    result = site.provision("ml-9")
    assert not result.get("failed"), (point, result.get("msg"))
    assert result["instances"][0]["state"] == "running"
    assert site.table() == {CARD: "domain:ml-9"}
    assert site.drivers() == {OTHER: "bochs-drm", CARD: "vfio-pci"}
    assert not site.provision("ml-9")["changed"]
    second = killed(site, point, lambda: site.do("absent", "ml-9"))
    result = site.do("absent", "ml-9")
    assert not result.get("failed"), (point, result.get("msg"))
    assert site.drivers() == {OTHER: "bochs-drm", CARD: "pci-stub"}
    assert (site.table(), site.files("ml-9"), site.virt.domain("ml-9").defined) == ({}, [], False)
    return first or second


@pytest.mark.parametrize("point", FEW)
def test_killed_and_run_again(site, point):
    """A controller that dies in the middle must not cost a card, a disk, or a person's afternoon."""
    assert life(site, point)


def test_a_guest_whose_removal_was_cut_off_is_extended_for_nobody(site, monkeypatch):
    """Lost: the work of a tenant who was told that there are hours left, of a guest without a disk."""
    site.provision("ml-9", lease_hours=1)
    real = guests.remove_tree

    def cut_off(folder, deadline):
        (site.folder / "guests-files/ml-9/disk.img").unlink(missing_ok=True)
        raise HeteroError("its power was cut")

    monkeypatch.setattr(guests, "remove_tree", cut_off)
    assert site.do("absent", "ml-9")["failed"]
    refused = site.do("extended", "ml-9", lease_hours=5)
    assert "its end was begun, and what it had is gone: no longer lease keeps it: terminate it" in refused["msg"]
    monkeypatch.setattr(guests, "remove_tree", real)
    assert not site.do("absent", "ml-9").get("failed")
    assert site.files("ml-9") == []


def test_a_guest_ends_with_its_tests(site):
    """Lost: the address that the next tests need, to an sshd of some that were killed."""
    tests = os.fork()
    if tests == 0:
        signal.pause()
    try:
        site.virt.serve(tests)
        site.provision("ml-9")
        guest = os.pidfd_open(int((site.folder / "guests/ml-9/pid").read_text()))
    finally:
        os.kill(tests, signal.SIGKILL)
        os.waitpid(tests, 0)
    assert select.select([guest], [], [], 30)[0]
    os.close(guest)
    (site.folder / "guests/ml-9/pid").unlink()


@pytest.mark.long
def test_killed_at_every_command(site):
    """The same at each point where libvirt is asked something."""
    reached = [point for point in ALL if life(site, point)]
    assert len(reached) > 20
