# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The UUID in a container's own file outlives a boot of its host, after which the driver shows none. Lost: its GPU, for
another's, once cards have changed their slots.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import uuid_of
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

UNKNOWN = "GPU-????????-????-????-????????????"


def restore(host):
    with Store(host.state_db, "test") as store:
        return restoration.restore(host.site(store))


def begin_anew(host):
    with Store(host.state_db, "test") as store:
        return restoration.begin_anew(host.site(store))


def boot(host):
    """The host's first look after a boot: the driver shows no UUID yet."""
    for address in ADDRESSES:
        host.machine.serve(address, MINORS[address], UNKNOWN)
    restore(host)


def change_slots(host, one, two):
    """Two cards have changed their slots, and the driver shows all UUIDs."""
    for address in ADDRESSES:
        host.machine.serve(address, MINORS[address])
    host.machine.serve(one, MINORS[one], uuid_of(MINORS[two]))
    host.machine.serve(two, MINORS[two], uuid_of(MINORS[one]))


def uuids(box):
    return [gpu["uuid"] for gpu in persistence.read(box).gpus]


def test_a_boot_forgets_no_uuid(host):
    box = host.boxes.make(name="a", start=False)
    own = host.attach(box, count=1)["gpus"][0]
    boot(host)
    assert persistence.read(box).gpus == [{"address": own["address"], "uuid": own["uuid"]}]


def test_a_uuid_that_was_never_known_is_learned(host):
    box = host.boxes.make(name="a", start=False)
    boot(host)
    own = host.attach(box, count=1)["gpus"][0]["address"]
    assert uuids(box) == [None]
    host.machine.serve(own, MINORS[own])
    restore(host)
    assert uuids(box) == [uuid_of(MINORS[own])]
    with Store(host.state_db, create=False) as store:
        assert [row.uuid for row in store.allocations()] == uuids(box), "the table knows what its file knows"


@pytest.mark.parametrize("lost", ["", "after", "before"])
def test_its_card_in_another_slot_stays_its_own(host, lost):
    """Lost: its own GPU; it gets another in its place."""
    box = host.boxes.make(name="a", start=False)
    own = host.attach(box, count=1)["gpus"][0]
    other = next(address for address in ADDRESSES if address != own["address"])
    if lost == "before":  # and is begun anew by the first start
        lose(host)
    boot(host)
    change_slots(host, own["address"], other)
    if lost == "after":
        lose(host)
        begin_anew(host)
    restore(host)
    assert uuids(box) == [own["uuid"]]
    assert host.table() == {other: ["a"]}


@pytest.mark.parametrize("lost", [False, True])
def test_two_holders_whose_cards_change_slots(host, lost):
    """Lost: their GPUs, each to the other, or their starts."""
    first, second = (host.boxes.make(name=name, start=False) for name in "ab")
    one, two = (host.attach(box, count=1)["gpus"][0] for box in (first, second))
    boot(host)
    change_slots(host, one["address"], two["address"])
    if lost:
        lose(host)
        begin_anew(host)
    assert restore(host) == {"a": None, "b": None}
    assert (uuids(first), uuids(second)) == ([one["uuid"]], [two["uuid"]])
    assert host.table() == {one["address"]: ["b"], two["address"]: ["a"]}


def test_a_table_begun_anew_while_no_uuid_is_shown_has_those_of_the_files(host):
    box = host.boxes.make(name="a", start=False)
    own = host.attach(box, count=1)["gpus"][0]
    lose(host)
    for address in ADDRESSES:
        host.machine.serve(address, MINORS[address], UNKNOWN)
    begin_anew(host)
    with Store(host.state_db, create=False) as store:
        assert [row.uuid for row in store.allocations()] == [own["uuid"]]
