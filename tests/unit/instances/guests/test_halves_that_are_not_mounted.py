# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that moves, and the file system with its root on one of the two hosts, which is not mounted when that half is
ended. If these fail, its claim and its address go, and its disk is nobody's once it is mounted again, with all that its
tenant has written.

Tests compute_host/roots_out_of_sight.py, compute_host/move_step.py.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests

__all__ = ["guests", "two"]

UNSEEN = (
    "its root is not to be seen here, and win has run: nothing of it is removed, its address is not freed: mount what "
    "holds it, or put it back; where nobody has it any more, remove the record of its claim, {path}; then run this"
)


@contextmanager
def unmounted(guests, name):
    """The file system with all guests of a host is not mounted."""
    folder = guests.sites[name].folder / "guests-files"
    disk = folder.with_name("unmounted")
    folder.rename(disk)
    folder.mkdir()
    yield
    folder.rmdir()
    disk.rename(folder)


def record(guests, name):
    with guests.at(guests.sites[name]) as host:
        return host.store.records.path("win")


def said(guests, work):
    with pytest.raises(HeteroError) as refused:
        work()
    return str(refused.value)


@pytest.mark.parametrize(("name", "state"), [("kvm1", "leaving"), ("kvm2", "arriving")])
def test_the_end_of_a_half_waits_until_it_is_mounted(guests, name, state):
    """Lost: the disk, which stays where nobody sees it, as one that is said to be removed."""
    claim = guests.copied()
    with unmounted(guests, name):
        told = said(guests, lambda: guests.verb(name, lifecycle.absent, claim))
        assert UNSEEN.format(path=record(guests, name)) in told
        assert guests.states()[name] == state
    guests.terminate()
    guests.must_be_gone("it is mounted again")


def test_the_end_of_its_lease_waits_until_it_is_mounted(guests):
    """Lost: the same, at night."""
    guests.copied()
    with unmounted(guests, "kvm1"), pytest.raises(AssertionError, match="its root is not to be seen here"):
        guests.lease_ends()
    assert guests.states()["kvm1"] == "leaving"
    guests.lease_ends()
    guests.must_be_gone("it is mounted again")


def test_the_end_of_a_move_waits_until_its_former_root_is_mounted(guests):
    """Lost: the disk of the former root, which nothing says to be somebody's when it is seen again."""
    claim = guests.started()
    plan = dict(leaves="kvm1", arrives="kvm2", came_by=guests.run, settles="r2")
    with unmounted(guests, "kvm1"):
        told = said(guests, lambda: guests.leave(plan, claim, claim["host_key"]))
        assert UNSEEN.format(path=record(guests, "kvm1")) in told
        assert guests.states() == {"kvm1": "leaving", "kvm2": "running"}
    guests.migrate()
    guests.must_run("it is mounted again")


def test_what_is_not_mounted_on_the_new_host_is_not_given_up(guests):
    """Lost: one life: what was given up there starts with its host when it is mounted, beside the former root."""
    guests.started()
    with guests.here(guests.sites["kvm2"]) as site:
        site.virt.domain("win").stop()
    with unmounted(guests, "kvm2"):
        assert "its root is not to be seen here" in said(guests, lambda: guests.migrate(back=True))
        assert guests.states() == {"kvm1": "leaving", "kvm2": "running"}
    guests.migrate(back=True)
    guests.must_run("it is mounted again")
    assert guests.running() == ["kvm1"]


def test_the_printed_way_ends_a_half_that_nobody_has_any_more(guests):
    """Lost: a name, an address and a card for good, with the disk of the host that held the former root."""
    guests.copied()
    with unmounted(guests, "kvm1"):
        said(guests, guests.terminate)
        os.unlink(record(guests, "kvm1"))
        guests.terminate()
        assert guests.states() == {}
