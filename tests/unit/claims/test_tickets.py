# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places in a node's database. If these fail, a dead play keeps others from boards for ever, or who waited for hours
goes to the end of the queue when a connection breaks.
"""

from __future__ import annotations

import unicodedata
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.tables import LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import (
    OLDEST,
    Ticket,
    Tickets,
    agreed,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.database import Database
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput

NAN = float("nan")


@pytest.fixture
def db(tmp_path):
    with closing(Database(str(tmp_path / "state.db"), LAYOUT)) as opened:
        yield opened


def ticket(request="lab", owner="ann", asked=100.0, count=2, flavor="tp64", **more):
    return Ticket(request, owner, asked, dict(flavor=dict(name=flavor), count=count), **more)


def aged(db, seconds):
    """Time goes on for all tickets that are there."""
    db.write("UPDATE tickets SET renewed = renewed - ?", (seconds,))


def test_a_ticket_is_kept_as_it_was_given(db):
    """Lost: what somebody waits for, or what other nodes have for it."""
    tickets = Tickets(db)
    kept = tickets.keep(ticket(priority=3, elsewhere=((5.0, 1), (9.5, 2)), lasts=90.0))
    assert tickets.living() == [kept]
    assert (kept.priority, kept.elsewhere, kept.lasts, kept.wish["count"]) == (3, ((5.0, 1), (9.5, 2)), 90.0, 2)
    assert tickets.of("lab", "ann") == kept
    assert tickets.of("lab", "bob") is None, "a name may be another owner's on another node"


def test_a_place_is_lost_after_a_minute_without_a_word(db):
    """Lost: boards, which are held for a play that was killed."""
    tickets = Tickets(db)
    tickets.keep(ticket())
    aged(db, 59)
    assert len(tickets.living()) == 1
    aged(db, 2)
    assert tickets.living() == []
    tickets.keep(ticket("other"))
    assert [row["request"] for row in db.rows("SELECT request FROM tickets")] == ["other"], "no dead ones pile up"


def test_a_clock_that_was_set_back_keeps_no_place(db):
    """Lost: boards for as long as the clock was ahead."""
    Tickets(db).keep(ticket())
    aged(db, -3600)
    assert Tickets(db).living() == []


def test_who_comes_back_within_a_minute_has_the_place(db):
    """Lost: hours in the queue, to a play that was killed and started again."""
    tickets = Tickets(db)
    tickets.keep(ticket(asked=100.0))
    assert tickets.keep(ticket(asked=500.0)).asked == 100.0
    assert tickets.of("lab", "ann").asked == 100.0
    assert tickets.keep(ticket(asked=500.0, count=1)).asked == 100.0, "who wants less waits no longer for it"
    aged(db, 61)
    assert tickets.keep(ticket(asked=600.0)).asked == 600.0


def test_what_the_play_says_in_the_end_counts(db):
    """Lost: one order on all nodes, to one that kept an earlier time than the others did."""
    tickets = Tickets(db)
    tickets.keep(ticket(asked=100.0))
    assert tickets.keep(ticket(asked=500.0), takes_over=False).asked == 500.0
    assert tickets.of("lab", "ann").asked == 500.0


NOW = 1e9


@pytest.mark.parametrize(
    ("said", "since"),
    [
        ([NOW - 50], NOW - 50),
        ([NOW - 50, NOW - 50], NOW - 50),
        ([NOW - 50, NOW], NOW),
        ([1.0, NOW], NOW),
        ([1.0, NOW, NOW], NOW),
        ([NOW - 900, NOW - 900, NOW - 50, NOW - 50], NOW - 50),
        ([NOW - 50, NOW - 50, NOW + 9e6], NOW - 50),
        ([NOW - 50, NOW - 50, NOW], NOW - 50),
        ([NOW + 9e6], NOW),
        ([1.0], NOW),
        ([NOW - OLDEST], NOW - OLDEST),
    ],
)
def test_no_node_alone_says_since_when_a_request_waits(said, since):
    """Lost: everybody's turn, on all nodes, to whom one node puts first; or the turn of one whom it puts last."""
    assert agreed(NOW, said) == since


@pytest.mark.parametrize("more", [dict(count=3), dict(flavor="tgx")])
def test_a_place_for_one_is_no_place_for_eight(db, more):
    """Lost: everybody's turn, to who keeps a place by asking for little."""
    tickets = Tickets(db)
    tickets.keep(ticket(asked=100.0))
    assert tickets.keep(ticket(asked=500.0, **more)).asked == 500.0


def test_a_live_play_that_was_silent_for_long_has_its_time(db):
    """Lost: one order on all nodes, where one of them did not hear of a play for a while."""
    tickets = Tickets(db)
    tickets.keep(ticket(asked=100.0))
    aged(db, 1000)
    assert tickets.keep(ticket(asked=100.0)).asked == 100.0


def test_a_place_is_given_up(db):
    tickets = Tickets(db)
    tickets.keep(ticket())
    assert (tickets.end("lab", "bob"), tickets.end("lab", "ann"), tickets.end("lab", "ann")) == (False, True, False)
    assert tickets.living() == []


def test_claims_that_went_first_are_known_as_long_as_they_are_there(db):
    """Lost: who is to keep to a lease; or room, to names of years ago."""
    tickets = Tickets(db)
    tickets.note_first("a", 1.5, {"a"})
    tickets.note_first("b", 2.5, {"a", "b"})
    assert [tickets.went_first(*one) for one in (("a", 1.5), ("a", 1.6), ("b", 2.5))] == [True, False, True]
    tickets.note_first("c", 3.5, {"c"})
    assert [row["instance"] for row in db.rows("SELECT instance FROM went_first")] == ["c"]


@pytest.mark.parametrize(
    ("given", "thing"),
    [
        (dict(asked=0.0), "asked"),
        (dict(asked=NAN), "asked"),
        (dict(asked=float("inf")), "asked"),
        (dict(priority=1001), "priority"),
        (dict(priority=-1001), "priority"),
        (dict(lasts=0.0), "seconds"),
        (dict(lasts=NAN), "seconds"),
        (dict(lasts=86401.0), "seconds"),
        (dict(elsewhere=((1.0, 1),) * 10001), "elsewhere"),
    ],
)
def test_what_cannot_be_is_refused(db, given, thing):
    """Lost: the order of all others, to a time that is no number."""
    with pytest.raises(BadInput) as error:
        Tickets(db).keep(ticket(**given))
    assert error.value.thing == thing
    assert Tickets(db).living() == []


@pytest.mark.parametrize(("before", "now", "goes_on"), [([1], [], False), ([1], [1, 2], False), ([], [2], True)])
def test_a_place_for_some_of_the_instances_is_none_for_all(db, before, now, goes_on):
    """Lost: everybody's turn, to who keeps a place by asking for one of many, and has it for all of them."""
    tickets, one = Tickets(db), ticket(count=8)
    tickets.keep(Ticket("lab", "ann", 100.0, dict(one.wish, numbers=before)))
    kept = tickets.keep(Ticket("lab", "ann", 200.0, dict(one.wish, numbers=now)))
    assert kept.asked == (100.0 if goes_on else 200.0)


def test_an_owner_typed_in_two_ways_has_one_place(db):
    """Lost: a place to whoever types an accent on another machine; or two places, of which one holds boards for nobody.

    An earlier release has written the name down as it was typed.
    """
    one, two = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))
    tickets = Tickets(db)
    tickets.keep(ticket(owner=one, asked=50.0))
    db.write("UPDATE tickets SET owner = ?", (two,))
    assert tickets.of("lab", one) == tickets.of("lab", two) == tickets.living()[0]
    assert tickets.keep(ticket(owner=two, asked=100.0)).asked == 50.0
    assert [found.owner for found in tickets.living()] == [one]
    assert (tickets.end("lab", two), tickets.living(), tickets.end("lab", two)) == (True, [], False)
