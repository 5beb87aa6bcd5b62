# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of reservations as people write it. If these fail, a course begins an hour late, or on another day, or a
table that nobody can read is found at its first claim.

Tests site/reservations.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.reservations import (
    RESERVATIONS,
    Reservation,
    date,
)

FLAVORS = {"tp64": {"memory_mb": 4096}}
GOOD = {"owner": "ann", "from": "2026-12-07 08:00+01:00", "until": "2026-12-11 18:00+01:00", "flavor": "tp64"}
NOON = 1796644800.0


def read(*entries):
    """(what was read, what is wrong with it)."""
    wrong: list[HeteroError] = []
    found = RESERVATIONS.read({"table": list(entries), "flavors": FLAVORS}, "reservations", wrong)
    return found, [str(one) for one in wrong]


@pytest.mark.parametrize("text", [
    "2026-12-07 12:00Z",
    "2026-12-07T12:00:00Z",
    "2026-12-07 12:00 UTC",
    "2026-12-07 13:00+01:00",
    "2026-12-07T13:00:00.000+0100",
    "2026-12-07 13:00 +01:00",
    "2026-12-07 06:30-05:30",
])  # fmt: skip
def test_a_date_has_a_zone(text):
    """Lost: an hour of the course, to the zone of whichever machine reads it."""
    assert date(text) == NOON


@pytest.mark.parametrize("text", [
    "2026-12-07 12:00", "2026-12-07", "2026-02-30 12:00Z", "2026-12-07 25:00Z", "2026-12-07 12:00+01:99", "12:00Z",
    "2026-12-07 12:00+99:00", "0000-01-01 00:00Z", "tomorrow", "", None, 1796644800, "\u0662026-12-07 12:00Z",
])  # fmt: skip
def test_what_is_no_date_is_none(text):
    """Lost: the day that was meant, to a guess."""
    assert date(text) is None


def test_an_entry_is_read():
    """Lost: what is reserved, or for whom."""
    found, wrong = read(GOOD, dict(GOOD, count=2, why="course"), {**GOOD, "flavor": None, "which": [3, "board4"]})
    assert wrong == []
    one, two, certain = found
    assert one == Reservation("ann", 1796626800.0, 1797008400.0, "", 1, dict(FLAVORS["tp64"], name="tp64"))
    assert (two.what, two.why) == ("2 tp64", "course")
    assert (certain.what, certain.which, certain.count) == ("board3, board4", ("3", "board4"), 0)
    assert RESERVATIONS.read({}, "reservations", []) == RESERVATIONS.read([], "reservations", []) == ()


@pytest.mark.parametrize(("change", "text"), [
    ({"owner": None}, "[0].owner: is missing: name who gets it"),
    ({"from": None}, "[0].from: is missing: give a date with time and zone in quotes"),
    ({"from": "2026-12-07 08:00"}, '[0].from: is "2026-12-07 08:00", which has no zone: give a date'),
    ({"until": "2026-12-07 08:00+01:00"}, "[0].until: is not after from: give a later date, or swap the two"),
    ({"flavor": None}, "[0]: has neither which nor flavor: name certain nodes (which), or a flavor and"),
    ({"which": [1]}, "[0]: has both which and flavor: name certain nodes"),
    ({"flavor": "tp63"}, '[0].flavor: is "tp63", which is no flavor: name one that ansible-playbook'),
    ({"count": 0}, "[0].count: is 0: give a whole number from 1 to 10000"),
    ({"flavor": None, "which": [1, 1]}, "[0].which: names 1 twice: name each once"),
    ({"flavor": None, "which": [1], "count": 2}, "[0].count: stands beside key which: take it out"),
    ({"flavor": None, "which": "1"}, "[0].which: is \"1\": give a list"),
    ({"ownr": "ann"}, "[0].ownr: is no key: did you mean owner?"),
    ({"colour": "red"}, "[0].colour: is no key: give owner, from, until, count, flavor, which, why"),
    ({"why": "x" * 201}, "[0].why: is "),
])  # fmt: skip
def test_a_mistake_is_told_with_its_place(change, text):
    """Lost: the course, to a slip that nobody was told of."""
    found, wrong = read({**GOOD, **change})
    assert found == ()
    assert len(wrong) == 1
    assert wrong[0].startswith(f"reservations{text}")


def test_all_mistakes_are_told_at_once():
    """Lost: a set-up run for each mistake."""
    _found, wrong = read("ann", {"owner": ""}, GOOD, dict(GOOD, until="x", count="many"))
    places = ["[0]", "[1].from", "[1].until", "[1].owner", "[1]", "[3].count", "[3].until"]
    assert sorted(one.split(": ")[0] for one in wrong) == sorted(f"reservations{place}" for place in places)


@pytest.mark.parametrize("value", ["ann", 1, {"table": {}}, {"table": [], "flavors": []}, [GOOD]])
def test_what_is_no_table_is_refused(value):
    """Lost: a traceback of the node, in place of the mistake."""
    wrong: list[HeteroError] = []
    RESERVATIONS.read(value, "reservations", wrong)
    assert [one.remedy for one in wrong] == ["give a list of reservations"]


def test_a_node_reads_it_with_its_configuration(tmp_path):
    """Lost: the table, between the role and the node."""
    file = tmp_path / "proxy.json"
    file.write_text('{"reservations": {"table": [{"owner": "ann"}]}}')
    with pytest.raises(HeteroError, match=r"reservations\[0\]\.from: is missing"):
        read_config(str(file))
    file.write_text("{}")
    assert read_config(str(file)).reservations == ()
