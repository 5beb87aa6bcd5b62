# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a lease, as it is set and told. Whole nodes are in verbs/test_lease.py."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_leases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.leases import as_date
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def extend(proxy, hours, request="jackie", owner=None, created=(), check=False, **more):
    change = Change(check)
    asked = Instances(request, owner, created=created, **more)
    return board_leases.extend(proxy, asked, hours, change, Deadline(60)), change


@pytest.mark.parametrize("check", [True, False])
def test_the_end_of_a_lease_is_set_and_told(node, proxy, check):
    """Lost: when an instance ends, to its owner; or an instance, to a lease of a dry run."""
    (mine,) = claimed(proxy, lease_hours=9)
    node.root(0, mine)
    begun = time.time()
    result, change = extend(proxy, 2, owner="ann", created=(mine.created,), check=check)
    (one,) = result["boards"]
    assert begun + 7200 <= one["expires"] <= time.time() + 7200
    assert (one["board"], one["instance"], one["owner"], one["changed"]) == (0, "jackie", "ann", True)
    assert (result["changed"], result.get("failed")) == (True, None)
    assert one["until"].endswith(" left")
    assert one["until"].startswith("until ")
    (line,) = result["lines"]
    assert (line["phase"], line["instance"], line["node"]) == ("lease", "jackie", "board0")
    assert line["text"].startswith(f"{one['until']} (was: until ")
    assert line["text"].endswith(" left)")
    (diff,) = change.diff
    assert (diff["before_header"], diff["before"], diff["after"]) == (
        "jackie", {"expires": as_date(mine.expires)}, {"expires": as_date(one["expires"])},
    )  # fmt: skip
    assert proxy.store.claim_of("jackie").expires == (mine.expires if check else one["expires"])
    assert [event.text for event in proxy.store.events() if event.phase == "lease"] == ([] if check else [line["text"]])


def test_what_is_reserved_while_a_lease_is_made_longer_counts(node, proxy, monkeypatch):
    """Lost: the hours for which somebody reserved that board a moment ago."""
    (mine,) = claimed(proxy, lease_hours=9)
    node.root(0, mine)
    looks = []

    def must_be_allowed(proxy, claim, expires):
        looks.append(expires)
        if len(looks) == 2:
            raise Refused("is reserved from 15:00 on", "board0", "end it before")

    monkeypatch.setattr(board_leases, "_must_be_allowed", must_be_allowed)
    result, _change = extend(proxy, 99)
    assert (result["failed"], "is reserved from 15:00 on" in result["msg"]) == (True, True)
    assert proxy.store.claim_of("jackie").expires == mine.expires


def test_an_end_is_taken_away(node, proxy):
    """Lost: an instance that is to stay."""
    (mine,) = claimed(proxy, lease_hours=9)
    node.root(0, mine)
    result, _change = extend(proxy, 0)
    assert (result["boards"][0]["expires"], result["boards"][0]["until"]) == (None, "no end")
    assert proxy.store.claim_of("jackie").expires is None
    again, change = extend(proxy, 0)
    assert (again["boards"][0]["changed"], again["changed"], again["lines"], change.diff) == (False, False, [], [])


@pytest.mark.parametrize("hours", [-1, float("nan"), 1e9])
def test_what_is_no_lease_is_refused(proxy, hours):
    """Lost: an instance, to a slip of the keyboard."""
    claimed(proxy)
    with pytest.raises(BadInput, match=r"^hours: is "):
        extend(proxy, hours)


def test_a_clock_that_is_behind_sets_no_end(proxy, monkeypatch):
    """Lost: an instance, hours early, after the clock of its node was set right; or the way to take its end away."""
    claimed(proxy)
    asked = []

    def behind(store, verb, dry):
        asked.append((store, verb, dry))
        raise Refused("is behind", "the clock")

    monkeypatch.setattr(board_leases, "extend_lease", behind)
    with pytest.raises(Refused, match="the clock: is behind"):
        extend(proxy, 1)
    assert asked == [(proxy.store, "reap", False)]
    extend(proxy, 0)
    assert len(asked) == 1


def test_whose_lease_is_not_set(node, proxy):
    """Lost: whose instance it is, or that it is not there any more."""
    (mine,) = claimed(proxy)
    proxy.store.begin_end(mine)
    assert extend(proxy, 1)[0]["msg"].startswith("jackie: its end was begun, and what it had is gone")
    node.root(0, mine)
    assert "jackie: belongs to ann" in extend(proxy, 1, owner="bob")[0]["msg"]
    assert "claimed anew by ann" in extend(proxy, 1, created=(1.0,))[0]["msg"]
    with pytest.raises(Refused, match="no such instance"):
        extend(proxy, 1, "bob")
    node.root(0, mine, of="eve 1.0")
    assert "its root is that of eve, not of jackie" in extend(proxy, 1)[0]["msg"]
    assert proxy.store.claim_of("jackie").expires is None


def test_of_several_those_that_were_asked_for(proxy):
    """Lost: the end of an instance that nobody spoke of."""
    claimed(proxy, "lab", (0, 1), made=False)
    result, _change = extend(proxy, 1, "lab", numbers=(2,))
    assert [one["instance"] for one in result["boards"]] == ["lab-2"]
    assert proxy.store.claim_of("lab-1").expires is None
    result, _change = extend(proxy, 1, "lab")
    assert [one["changed"] for one in result["boards"]] == [True, False]


def test_one_that_left_its_board_meanwhile_is_looked_for_again(proxy, monkeypatch):
    """Lost: the word that nothing is on this board any more whose lease could be set."""
    (mine,) = claimed(proxy, made=False)
    monkeypatch.setattr(board_leases, "ids_of", lambda *words: proxy.store.release(0, mine) or [0])
    left = "was left by jackie meanwhile, which ended, or moved to another board"
    assert extend(proxy, 1)[0]["msg"] == f"board0: {left}: run this again, which looks up where jackie is"


def test_a_lease_that_may_not_be_ended_says_what_it_waits_for(node, proxy):
    """Lost: a word that somebody is to give, without which the lease of a lost record never ends."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    node.record(0).unlink()
    (line,) = extend(proxy, 1)[0]["lines"]
    doubt = "the record of jackie's claim is lost, and the database may be older than what it said"
    assert line["text"].partition("; but ")[2] == (
        f"{doubt}: it is not ended until {play('reconcile', adopt='jackie')} has that written anew"
    )
    assert "; but " not in extend(proxy, 0)[0]["lines"][0]["text"]


@pytest.mark.parametrize("how", ["gone", "anew", "other"])
def test_a_lease_that_does_not_read_back_is_said(node, proxy, monkeypatch, how):
    """Lost: the day after: its owner was told of a lease that no database has."""
    (mine,) = claimed(proxy, made=False)
    put = proxy.store.put

    def writes(instance, **fields):
        if how == "other":
            return put(instance, expires=5e9)
        put(instance, **fields)
        proxy.store.forget(mine, "x")
        return how == "gone" or claimed(proxy, made=False, lease_hours=1)

    monkeypatch.setattr(proxy.store, "put", writes)
    result, _change = extend(proxy, 1)
    assert f"{node.params['state_db']}: the lease of jackie does not read back as it was written" in result["msg"]
    assert result["lines"] == []
