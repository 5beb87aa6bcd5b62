# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of owners at their edges. If these fail, one owner has what others are to have, or is refused what the site
gives, or is told a number that is refused as well.

Tests claims/owner_limits.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.owner_limits import OwnerLimits
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owner_limits import Limit

JOSE, TYPED = "jos\u00e9", "jose\u0301"


def limits(table, **has):
    """The limits of node p1, where each owner of `has` has instances of these flavors."""
    claims = [
        SimpleNamespace(instance=f"{owner}-{number}", owner=owner, flavor={"name": flavor})
        for owner, flavors in has.items()
        for number, flavor in enumerate(flavors)
    ]
    return OwnerLimits(table, SimpleNamespace(claims=lambda: claims), "p1", "board")


def request(owner="ann", count=1, partial=False, hours=None, flavor="small"):
    instances = [f"lab-{number}" for number in range(count)]
    return SimpleNamespace(
        owner=owner, instances=instances, partial=partial, lease_hours=hours, flavor={"name": flavor}
    )


def test_who_is_not_named_has_what_all_others_have():
    """Lost: what a site gave one owner, to the rule for the rest; or the rule."""
    named = limits({"*": Limit(2), "ci": Limit(9), "eve": Limit(0)})
    assert [named.may_have(owner) for owner in ("ann", "ci", "eve")] == [2, 9, 0]
    assert limits({"ci": Limit(9)}).may_have("ann") is None, "a site that limits one owner limits no other"
    assert limits({}).may_have("ann") is None


@pytest.mark.parametrize(("named", "asks"), [(JOSE, TYPED), (TYPED, JOSE)])
def test_a_name_with_an_accent_is_one_name(named, asks):
    """Lost: a limit, to who types the letter in the other of two ways; and what was claimed by the first."""
    assert limits({named: Limit(3)}, **{named: ["small"]}).may_have(asks) == 2


@pytest.mark.parametrize(
    ("limit", "has", "left"),
    [
        (Limit(2), ["small", "big"], 0),
        (Limit(1), ["small", "big"], 0),  # it was set later
        (Limit(3), ["small", "big"], 1),
        (Limit(None, flavors={"small": 1}), ["big", "big"], 1),
        (Limit(None, flavors={"small": 1}), ["small", "big"], 0),
        (Limit(3, flavors={"small": 9}), ["big"], 2),
        (Limit(9, flavors={"small": 2}), ["small"], 1),
        (Limit(None, flavors={"big": 0}), ["big"], None),
    ],
)
def test_the_narrower_of_two_limits_counts(limit, has, left):
    """Lost: one of two limits that an operator set."""
    assert limits({"ann": limit}, ann=has, bob=["small"] * 9).may_have("ann", "small") == left


FEWER = ": ask for fewer, take what there is (-e partial=true), or ask an operator for more"
ASK = ": ask an operator for more"
IT, THESE = ("; end " + which + " first, or wait for its end" for which in ("it", "one of these"))


@pytest.mark.parametrize(
    ("limit", "has", "why"),
    [
        (Limit(2), ["small", "big"], f"ann has 2 boards of p1, and may have 2 at once: ann-0, ann-1{THESE}"),
        (
            Limit(9, flavors={"small": 1}),
            ["small", "big"],
            f"ann has 1 board of p1 with flavor small, and may have 1 at once: ann-0{IT}",
        ),
        (
            Limit(2, flavors={"small": 1}),
            ["small", "big"],
            f"ann has 2 boards of p1, and may have 2 at once: ann-0, ann-1{THESE}",
        ),
        (Limit(0), [], "ann has 0 boards of p1, and may have 0 at once"),
        (
            Limit(5),
            ["small"] * 5,
            f"ann has 5 boards of p1, and may have 5 at once: ann-0, ann-1, ann-2, ann-3, …{THESE}",
        ),
    ],
)
def test_who_may_have_no_more_reads_which_limit_it_is(limit, has, why):
    """Lost: which instance to end so that another may begin."""
    assert limits({"ann": limit}, ann=has).why_no_more("ann", "small") == why


@pytest.mark.parametrize(
    ("limit", "asked", "why"),
    [
        (Limit(2), request(count=2), None),
        (Limit(2), request(count=3), f"ann may have 2 boards of p1 at once{FEWER}"),
        (Limit(1), request(count=3, partial=True), None),
        (Limit(0), request(count=3, partial=True), f"ann may have no boards of p1 at once{ASK}"),
        (Limit(1), request(count=2), f"ann may have 1 board of p1 at once{FEWER}"),
        (
            Limit(5, flavors={"small": 1}),
            request(count=2),
            f"ann may have 1 board of p1 with flavor small at once{FEWER}",
        ),
        (Limit(5, flavors={"big": 1}), request(count=2), None),
        (Limit(hours=8), request(hours=8), None),
        (Limit(hours=8), request(hours=8.5), "ann may have boards of p1 for 8 h: give -e hours=8 or less"),
        (Limit(hours=8), request(), "ann may have boards of p1 for 8 h: give -e hours=8 or less"),
        (Limit(hours=8), request(hours=0), "ann may have boards of p1 for 8 h: give -e hours=8 or less"),
    ],
)
def test_what_never_fits_is_refused_at_once(limit, asked, why):
    """Lost: a place in the queue for what nobody can ever give; what to do instead; or the end of a board's lease."""
    assert limits({"ann": limit}, ann=["small"] * 9).never(asked) == why


@pytest.mark.parametrize("hours", [0, 8.1, 1e6])
def test_a_lease_is_not_made_longer_than_a_limit(hours):
    """Lost: the end of each lease, to who extends it again and again, or for ever (0)."""
    with pytest.raises(Refused, match="who may have it for 8 h from now") as caught:
        limits({"ann": Limit(hours=8)}).must_not_be_longer("lab", "ann", hours)
    assert "hours=8 is possible" in str(caught.value.remedy)


@pytest.mark.parametrize(("table", "hours"), [({"ann": Limit(hours=8)}, 8), ({"ann": Limit(2)}, 0), ({}, 0)])
def test_a_lease_within_a_limit_is_extended(table, hours):
    """Lost: a tenant's instance, at an end that the site would have moved."""
    limits(table).must_not_be_longer("lab", "ann", hours)
