# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's move beside another one, an operator's word, a clock that is off, a tenant's tricks. If these fail, the
only root of an instance is removed, it runs twice, or its lease ends on another day.

Tests compute_host/departures.py, compute_host/arrivals.py, compute_host/move_step.py, site/moves.py.
"""

from __future__ import annotations

import struct
from contextlib import nullcontext
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Domain, Libvirt
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import Guests
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import two
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at

__all__ = ["two"]


@pytest.fixture
def guests(two):
    """win runs on kvm1 with its card, and has something of its own on its disk."""
    made = Guests(two)
    made.provide()
    return made


def claim(guests, name="kvm1"):
    with guests.at(guests.sites[name]) as host:
        return vars(host.store.claim_of("win"))


def copied(guests):
    """Its root is on both hosts, and it runs on neither; its claim as plays have it."""
    whose = claim(guests)
    came = guests.step("kvm1", "described", whose)["came"]
    guests.copy(dict(leaves="kvm1", arrives="kvm2", left_by="", came_by=""), whose, came)
    return whose


@pytest.mark.parametrize("at", ["remove", "give_back"])
def test_a_copy_that_was_given_up_half_way_is_never_an_empty_root(guests, at):
    """Lost: all that a tenant has: the new host makes an empty root of the image, and the former one is removed."""
    whose = copied(guests)
    killed_at(GuestWork, at, lambda: guests.step("kvm2", "given_up", whose))
    assert guests.states() == {"kvm1": "leaving", "kvm2": "ending"}
    guests.tried()
    guests.must_run("given up half way")


@pytest.mark.parametrize("at", ["settled", "gone"])
def test_an_operator_who_takes_a_move_back_as_it_ends_does_not_lose_both_roots(guests, at):
    """Lost: both roots: the play that was thought dead removes the former one, the operator's word the new one."""
    took = []

    def word(node, step, whose, **more):
        if step == at and not took:
            took.append(at)
            with pytest.raises(HeteroError) if at == "gone" else nullcontext():
                plain("kvm2", "given_up", whose, force=True)
        return plain(node, step, whose, **more)

    plain, guests.step = guests.step, word
    try:
        guests.migrate()
    except HeteroError:
        assert at == "settled"
    guests.step = plain
    assert took
    if len(guests.states()) > 1 or "leaving" in guests.states().values():
        guests.tried(back=True)
    guests.must_run(f"taken back before {at}")


def test_who_moves_on_to_a_third_host_is_known_to_be_there(guests):
    """Lost: one life: the note says the second host, so where the third one is not asked, the second starts it."""
    whose = copied(guests)
    guests.step("kvm2", "given_up", whose)
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import departures
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.move_step import Asked, Step
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change

    with guests.at(guests.sites["kvm1"]) as host:
        asked = Asked("win", whose["created"], seen=guests.run, other="kvm3", timeout=60.0)
        departures.leaving(Step(host, asked, Change()))
    assert claim(guests)["note"] == "moves to kvm3"
    assert guests.step("kvm1", "described", whose)["came"]["other"] == "kvm3"


def test_one_that_was_off_is_started_by_no_boot_of_the_host_that_it_leaves(guests):
    """Lost: one life: the host that it left boots, and starts it beside the one that runs on the other host."""
    whose = claim(guests)
    with guests.here(guests.sites["kvm1"]) as site:
        site.virt.domain("win").stop()  # it crashed, or was ended inside
    assert guests.autostarts() == ["kvm1"]
    killed_at(Domain, "autostart", lambda: guests.step("kvm1", "leaving", whose))
    assert guests.states() == {"kvm1": "leaving"}
    guests.step("kvm1", "leaving", whose)
    assert guests.autostarts() == []
    guests.tried()
    guests.must_run("killed before its start was switched off")


def test_it_has_the_lease_and_the_key_that_it_had_when_it_left(guests):
    """Lost: what an extension gave, and so all data when the former lease ends; or the way in, to a former key."""
    whose = claim(guests)
    came = guests.step("kvm1", "described", whose)["came"]
    guests.step("kvm2", "arriving", whose, came=came)
    with guests.at(guests.sites["kvm1"]) as host:  # by a play from which the new host was left out
        host.store.put("win", expires=whose["expires"] + 36000, ssh_public_key=OTHER_KEY)
    guests.migrate()
    after = claim(guests, "kvm2")
    assert (after["expires"], after["ssh_public_key"]) == (whose["expires"] + 36000, OTHER_KEY)


def test_a_host_whose_clock_is_off_gets_nothing_that_ends(guests):
    """Lost: all data, hours before the end of the lease, by the reaper of a host whose clock is ahead."""
    whose = claim(guests)
    came = guests.step("kvm1", "described", whose)["came"]
    for hours in (2, -2):
        with pytest.raises(Refused, match="its clock shows"):
            guests.step("kvm2", "arriving", whose, came=dict(came, now=came["now"] + 3600 * hours))
        assert guests.states() == {"kvm1": "running"}
    guests.step("kvm2", "arriving", whose, came=dict(came, now=came["now"] - 7200, expires=None))


def test_one_with_another_key_inside_is_refused_before_anything_is_switched(guests):
    """Lost: a running instance, which never proves its key on the new host, and is kept on both in error."""
    whose = claim(guests)
    with guests.at(guests.sites["kvm1"]) as host:
        host.store.put("win", host_key=OTHER_KEY.rsplit(" ", 1)[0])
    with pytest.raises(HeteroError, match="another host key"):
        guests.step("kvm1", "described", whose)
    assert guests.running() == ["kvm1"]


def test_a_former_root_that_runs_is_not_removed(guests):
    """Lost: what somebody does in the former one, which was started by hand."""
    whose = copied(guests)
    with guests.here(guests.sites["kvm1"]):
        Libvirt(Deadline(60)).domain("win").start()
    with pytest.raises(HeteroError, match="runs here"):
        guests.step("kvm1", "gone", whose, host_key=whose["host_key"], departure=claim(guests, "kvm2")["departure"])
    assert guests.states()["kvm1"] == "leaving"


@pytest.mark.parametrize("key", ["", OTHER_KEY])
def test_a_former_root_is_removed_for_its_own_key_alone(guests, key):
    """Lost: the only root, where what runs on the new host is not it."""
    whose = copied(guests)
    with pytest.raises(HeteroError, match="host key"):
        guests.step("kvm1", "gone", whose, host_key=key)
    assert guests.states()["kvm1"] == "leaving"


@pytest.mark.parametrize("more", [dict(cpu_arch="aarch64"), dict(instance="other")])
def test_what_cannot_run_there_or_is_another_is_refused_and_claims_nothing(guests, more):
    """Lost: a running instance, to a host that starts nothing of its architecture; or a claim that nobody knows."""
    whose = claim(guests)
    came = guests.step("kvm1", "described", whose)["came"]
    assert set(more) <= set(came)
    with pytest.raises(HeteroError):
        guests.step("kvm2", "arriving", whose, came=dict(came, **more))
    with guests.at(guests.sites["kvm2"]) as host:
        assert host.store.claims() == []
    assert guests.states() == {"kvm1": "running"}


@pytest.mark.parametrize("key", ["image_hash", "host_key"])
def test_what_the_other_host_says_of_it_fills_no_database(guests, key):
    """Lost: the new host, whose every answer is refused for a text that is longer than any, to root of the former."""

    def lying(where, step, whose, **more):
        if step == "taken":
            more["came"] = {**more["came"], key: "x" * 100_000}
        return plain(where, step, whose, **more)

    plain, guests.step = guests.step, lying
    with pytest.raises(HeteroError):
        guests.migrate()
    assert guests.states() == {"kvm1": "running"}


def test_what_was_taken_since_it_was_chosen_leaves_it_running(guests):
    """Lost: an instance that was stopped for a host whose card somebody else got meanwhile."""

    def hooked(where, step, whose, **more):
        if step == "arriving":
            with guests.here(guests.sites["kvm2"]) as site:
                assert not site.provision("other").get("failed")
        return plain(where, step, whose, **more)

    plain, guests.step = guests.step, hooked
    with pytest.raises(HeteroError, match="does not move"):
        guests.migrate()
    assert guests.states() == {"kvm1": "running"}
    assert guests.running() == ["kvm1"]
    with guests.here(guests.sites["kvm1"]) as site:
        assert [line for line in site.virt.said() if line.startswith(("shutdown", "destroy"))] == []


@pytest.mark.parametrize("at", ["remove", "give_back"])
def test_a_former_root_whose_removal_was_cut_off_goes(guests, at):
    """Lost: a card and an address of the former host, for good; each verb says that the instance is there twice."""
    guests.leave = lambda plan, whose, key: None
    guests.migrate()
    whose = claim(guests, "kvm2")
    proven = dict(host_key=whose["host_key"], departure=whose["departure"])
    killed_at(GuestWork, at, lambda: guests.step("kvm1", "gone", whose, **proven))
    assert guests.states() == {"kvm1": "ending", "kvm2": "running"}
    del guests.leave
    guests.tried()
    guests.must_run("its end there was cut off")


def test_a_disk_that_says_it_is_a_qcow2_of_the_hosts_secrets_stays_a_raw_one(guests):
    """Lost: any file of the new host, to a tenant who writes the head of a qcow2 into the boot block."""
    name = b"/etc/shadow"
    head = struct.pack(">4sIQIIQ", b"QFI\xfb", 2, 104, len(name), 16, 1 << 62)
    with open(guests.disk("kvm1"), "r+b") as file:
        file.write(head.ljust(104, b"\0") + name)
        file.seek(0)
        before = file.read()
    guests.migrate()
    with open(guests.disk("kvm2"), "rb") as file:
        assert file.read() == before
    with guests.here(guests.sites["kvm2"]):
        xml = Libvirt(Deadline(60)).domain("win").xml(live=False)
    assert [one.get("type") for one in xml.findall("devices/disk/driver")] == ["raw"]
    assert "backingStore" not in ElementTree.tostring(xml, encoding="unicode")
    guests.must_run("a qcow2's head")
