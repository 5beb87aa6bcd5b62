# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations of a KVM host's guests and cards by date. If these fail, the cards of a course are others' when it
begins, or its memory is.

Tests claims/reservations.py, compute_host/host_queue.py.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_queue import HostQueue
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

SECOND = "0000:87:00.0"
#: Half of the host's memory, and no card.
PLAIN = {"name": "plain", "memory_mb": 1024, "vcpus": 1, "local_gb": 0, "extra_specs": {"hypervisor": "s== kvm"}}


@pytest.fixture
def two(site):
    """A host with two cards for guests."""
    site.virt.add(SECOND, "pci-stub", group=7)
    return site


def reserve(site, begin, end, owner="ann", **more):
    """Reserve from so many hours from now to so many; without more, one guest with a card."""
    dates = [time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(time.time() + hours * 3600)) for hours in (begin, end)]
    entry = {"owner": owner, "from": dates[0], "until": dates[1], "why": "course"}
    entry.update(more or {"flavor": KG1["name"]})
    site.configure(reservations={"table": [entry], "flavors": {one["name"]: one for one in (KG1, PLAIN)}})


def claim(site, instance, **more):
    """The cards that an instance gets, by its claim alone."""
    with site.host() as host:
        present(host, site.request(instance, **more), Change(False))
        return [row.address for row in host.store.allocations() if row.holder == f"instance:{instance}"]


def test_cards_are_left_for_who_reserved_them(two):
    """Lost: the card of a course, to who came before it, or makes an hour a month; or the other card, to nobody."""
    reserve(two, 5, 15)
    (first,) = claim(two, "a")
    with pytest.raises(NoneFree) as error:
        claim(two, "b")
    assert "reserved for ann from " in str(error.value)
    assert "(course): until then with -e hours=4.9" in str(error.value)
    assert error.value.facts["unfit"] == {}, "it can be had later"
    (rest,) = claim(two, "b", lease_hours=4.9)
    assert {first, rest} == {CARD, SECOND}
    for check in (True, False):
        late = two.do("extended", "b", check=check, lease_hours=6)
        assert "b: would keep what is reserved for ann from " in late["msg"]
        assert "-e instance=b -e hours=4.9 is possible" in late["msg"] or "leave its lease as it is" in late["msg"]
    assert two.do("extended", "a", lease_hours=0)["instances"][0]["failed"] is False
    two.do("absent", "b")
    assert claim(two, "lab", owner="ann", lease_hours=20) == [rest]


def test_certain_cards_are_reserved_by_their_addresses(two):
    """Lost: the card that the course is about, while another is free; or to who asks for it by name."""
    reserve(two, -1, 5, which=[CARD])
    with pytest.raises(NoneFree, match="reserved for ann until "):
        claim(two, "a", devices=(CARD,), lease_hours=0.1)
    assert claim(two, "a") == [SECOND]
    with pytest.raises(NoneFree, match="reserved for ann until "):
        claim(two, "b")
    assert claim(two, "lab", owner="ann", devices=(CARD,)) == [CARD]


def test_memory_is_left_for_who_reserved_it(two):
    """Lost: a guest of the course, whose memory another has."""
    reserve(two, -1, 5, flavor=PLAIN["name"])
    assert claim(two, "a", flavor=PLAIN) == []
    with pytest.raises(NoneFree) as error:
        claim(two, "b", flavor=PLAIN)
    assert "1024 MB of memory wanted" in str(error.value)
    assert "reserved for ann until " in str(error.value)
    claim(two, "lab", flavor=PLAIN, owner="ann")


def test_of_two_claims_at_once_one_takes_the_card_that_is_left(two):
    """Lost: the card of the course, to two who ask at the same moment: the transaction of the claim decides."""
    reserve(two, 5, 15)
    found, begin = {}, threading.Barrier(2)

    def ask(name):
        begin.wait(60)
        try:
            found[name] = len(claim(two, name))
        except NoneFree as none:
            found[name] = "reserved for ann" in str(none)

    asking = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
    for one in asking:
        one.start()
    for one in asking:
        one.join(120)
    assert sorted(map(str, found.values())) == ["1", "True"], found


def test_what_runs_beyond_its_begin_is_told_and_goes_on(two):
    """Lost: the warning that the course will have no card; or a guest, to a table that was written after it."""
    claim(two, "a")
    claim(two, "b")
    reserve(two, 5, 15)
    with two.host(create=False) as host:
        (course,) = HostQueue(host).reserved()
    assert course["text"].startswith("1 kg1.large for ann from ")
    assert course["lacks"] == (
        "1 of it cannot be had then by present leases: a is alice's without end, b is alice's without end"
    )
    assert [len(claim(two, name)) for name in ("a", "b")] == [1, 1], "asked for again, they keep what they have"
