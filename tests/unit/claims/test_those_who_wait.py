# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits on a node, of whatever kind. If these fail, what is free is held for nobody, or given past who waits.

Tests claims/store.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.reservations import Needs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.those_who_wait import Waiting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import Ticket
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import Lot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import names_of
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

FLAVOR = dict(name="small", memory_mb=1024, vcpus=1, local_gb=1)
ROOM = dict(memory_mb=8192, vcpus=8, local_gb=8)


@dataclass(frozen=True)
class Request:
    request: str
    owner: str = "ann"
    count: int = 1
    partial: bool = False
    lease_hours: float | None = None
    asked: float | None = None
    priority: int = 0
    flavor: dict = field(default_factory=lambda: FLAVOR)

    @property
    def instances(self):
        return names_of(self.request, self.count)


class Node(Waiting):
    """A node with `free` MB, of which each instance takes a thousand; others' end at the times of `ends`."""

    def __init__(self, store, free=0, ends=(), most=None):
        super().__init__(store)
        self.free, self.ends, self.most = free, ends, most

    def request_of(self, ticket):
        return Request(ticket.request, ticket.owner, **{key: ticket.wish[key] for key in ("count", "partial")})

    def needs(self, request):
        return Needs({"memory_mb": 1000}, ()) if request.flavor == FLAVOR else None

    def lots(self, now):
        return [
            Lot(0.0, {"memory_mb": self.free}),
            *(Lot(when, {"memory_mb": 1000}, (), name) for name, when in self.ends),
        ]

    def stuck(self):
        return {}

    @property
    def reservations(self):
        return []

    def fits(self, reservation):
        raise AssertionError(f"nothing is reserved here: {reservation}")

    def may_have(self, owner, flavor=None):
        return self.most


@pytest.fixture
def store(tmp_path):
    with Store(str(tmp_path / "host.db")) as opened:
        yield opened


def ticket(request, owner="bob", asked=100.0, count=1, partial=False, **more):
    return Ticket(request, owner, asked, dict(flavor=FLAVOR, count=count, partial=partial), **more)


def claim(store, instance, owner="ann", **more):
    return store.claim(Asked(instance, owner, FLAVOR, "box", KEY, "lxc", **more), ROOM, None, [])[0]


def test_where_nobody_waits_nothing_is_held(store):
    """Lost: a claim's time, to a look at leases for nobody."""
    assert Node(store, 1000).left_to(Request("lab")).amounts == {}


def test_what_is_free_is_held_for_who_asked_first(store):
    """Lost: the turn of who waits, to whoever asks at the right moment."""
    store.tickets.keep(ticket("first", count=2))
    node = Node(store, 2000)
    found = node.left_to(Request("lab"))
    assert found.may == 0
    held, wish = found.amounts["memory_mb"]
    assert (held, wish.request, wish.owner) == (2000, "first", "bob")
    assert node.left_to(Request("lab", asked=99.0)).may == 1, "who asked earlier goes first"
    assert Node(store, 3000).left_to(Request("lab")).may == 1, "there is one more"


def test_who_does_not_wait_comes_after_all_who_do(store):
    """Lost: the turn of who waits, to whoever asks a node whose clock is behind the controller's."""
    store.tickets.keep(ticket("first", asked=time.time() + 3600, count=2))
    node = Node(store, 2000)
    assert node.left_to(Request("lab")).may == 0
    assert node.left_to(Request("lab", priority=1)).may == 1
    assert node.left_to(Request("lab", asked=time.time())).may == 1


def test_a_request_that_this_node_never_serves_holds_nothing_up(store):
    """Lost: a node, which waits for a request that can only be served elsewhere."""
    store.tickets.keep(ticket("first"))
    assert Node(store, 1000).left_to(Request("lab", flavor=dict(name="other"))).amounts == {}


def test_a_place_for_one_is_none_for_eight(store):
    """Lost: everybody's turn, to who keeps a place by asking for little."""
    node = Node(store, 1000)
    store.tickets.keep(ticket("lab", "ann", asked=50.0))
    store.tickets.keep(ticket("first", asked=100.0))
    assert node.left_to(Request("lab")).may == 1
    assert node.left_to(Request("lab", count=8)).may == 0


def test_requests_of_one_owner_share_what_it_may_have(store):
    """Lost: the limit of an owner, who waits twice; or what others could have meanwhile."""
    for number in (1, 2, 3):
        store.tickets.keep(ticket(f"bob-{number}", asked=float(number)))
    assert Node(store, 3000, most=1).left_to(Request("lab")).may == 1
    assert Node(store, 3000).left_to(Request("lab")).may == 0


def test_a_place_ends_with_the_last_instance(store):
    """Lost: what is held for a request that has all, or the place of one that still lacks some."""
    node = Node(store, 2000)
    store.tickets.keep(ticket("lab", "ann", count=2))
    node.served(Request("lab", count=2), [claim(store, "lab-1", request="lab")])
    assert store.tickets.of("lab", "ann")
    node.served(Request("lab", count=2), [claim(store, "lab-2", request="lab")])
    assert store.tickets.of("lab", "ann") is None


def test_a_part_is_enough_where_that_was_said(store):
    """Lost: what is held for who is content."""
    store.tickets.keep(ticket("lab", "ann", count=2, partial=True))
    Node(store).served(Request("lab", count=2, partial=True), [claim(store, "lab-1", request="lab")])
    assert store.tickets.of("lab", "ann") is None


def test_who_went_first_by_its_lease_does_not_stay_longer(store):
    """Lost: the start that was told to who waits, each time that the other extends its lease."""
    when = time.time() + 7200
    store.tickets.keep(ticket("first", count=2))
    node = Node(store, 1000, ends=[("lab", when)])
    assert node.left_to(Request("lab", lease_hours=1.0)).goes_first
    made = claim(store, "lab", lease_hours=1.0)
    node.served(Request("lab", lease_hours=1.0), [made])
    node.must_end_in_time(made, "lab", when - 60)
    with pytest.raises(Refused, match=r"^lab: went before first of bob by its lease, and that is to start at "):
        node.must_end_in_time(made, "lab", when + 60)
    with pytest.raises(Refused):
        node.must_end_in_time(made, "lab", None)
    node.must_end_in_time(claim(store, "other"), "lab", None)


def test_a_place_is_kept_and_told(store):
    """Lost: where one is in the queue."""
    node = Node(store, 0, ends=[("x", time.time() + 60)])
    first = node.kept(ticket("first"), check=False)
    second = node.kept(ticket("lab", "ann", asked=200.0), check=False)
    assert (first["ahead"], second["ahead"]) == ([], [dict(request="first", owner="bob")])
    assert [one["request"] for one in node.shown()[0]] == ["first", "lab"]


def test_in_check_mode_no_place_is_kept(store):
    """Lost: a place that holds a node for who only looked."""
    assert Node(store).kept(ticket("lab"), check=True)["held"] == 0
    assert store.tickets.living() == []
    assert Node(store).shown() == ([], {})


def test_who_has_all_has_no_place_and_anothers_name_is_refused(store):
    """Lost: a name, to two owners."""
    claim(store, "lab")
    store.tickets.keep(ticket("lab", "ann"))
    assert Node(store).kept(ticket("lab", "ann"), check=False)["there"] == 1
    assert store.tickets.living() == []
    with pytest.raises(Refused, match="belongs to ann"):
        Node(store).kept(ticket("lab", "bob"), check=False)


@pytest.mark.parametrize(("name", "count"), [("lab", 1), ("lab", 2), ("lab-2", 1), ("la", 1)])
def test_a_name_that_another_waits_for_is_nobody_elses(store, name, count):
    """Lost: a request after an hour in the queue, to who takes its name for anything, and ends it at once."""
    store.tickets.keep(ticket("lab", count=3))
    node, request = Node(store, 9000), Request(name, count=count)
    mine = ticket(name, "ann", asked=200.0, count=count)
    if name == "la":
        assert node.left_to(request).may == 1
        assert node.kept(mine, check=False)
        return
    for ask in (lambda: node.left_to(request), lambda: node.kept(mine, check=False)):
        with pytest.raises(Refused, match="lab: bob waits for what is to have that name, and asked before: choose"):
            ask()
    assert store.tickets.of(name, "ann") is None
    assert node.kept(ticket("lab", count=3), check=False), "its own place goes on"


def test_of_two_who_wait_for_a_name_the_first_has_it(store):
    """Lost: the name, to who asked later, on a node that heard of both."""
    node = Node(store, 9000)
    store.tickets.keep(ticket("lab-1", asked=100.0))
    assert node.kept(ticket("lab", "ann", asked=50.0, count=2), check=False)
    with pytest.raises(Refused, match="lab: ann waits for"):
        node.kept(ticket("lab-1", asked=100.0), check=False)
    assert node.kept(ticket("lab-3", "eve", asked=200.0), check=False), "no instance of lab is called so"


def test_who_has_a_name_moves_with_it(store):
    """Lost: the way out of a broken board, to who waited for the name before it was given."""

    class Moving(Node):
        def _missing(self, request):
            return request.instances

    claim(store, "lab")
    store.tickets.keep(ticket("lab"))
    assert Moving(store, 1000).left_to(Request("lab")).may == 0
