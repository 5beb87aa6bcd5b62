# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site offers. If these fail, a user asks for what is not there, or not for what is."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.offers import offers

TYPES = {"b.small": dict(memory_mb=1024, flavorid=7), "a.big": dict(memory_mb=1 << 20)}


def board(number, **said):
    return dict(id=number, name=f"board{number}", memory_mb=16384, vcpus=64, local_gb=500, state="power off", **said)


def asked(*boards):
    return [dict(item="p1", boards=list(boards), claims=[]), dict(item="p2", failed=True)]


def test_how_many_there_can_be_now_and_at_most():
    """Lost: what can be asked for."""
    busy = board(2, instance="jackie", owner="bob")
    big, small = offers(TYPES, asked(board(1), dict(busy, state="running")))
    assert (small["name"], small["flavorid"], small["free"], small["most"]) == ("b.small", 7, 1, 2)
    assert (big["name"], big["flavorid"], big["free"], big["most"]) == ("a.big", None, 0, 0)
    assert "1024" in small["asks"]


def test_the_table_has_a_row_for_each():
    """Lost: the same, for people."""
    heading, big, small = offers(TYPES, asked(board(1)), table=True)
    assert heading.split() == ["FLAVOR", "ID", "FREE", "OF", "ASKS", "FOR"]
    assert big.split()[:4] == ["a.big", "-", "0", "0"]
    assert small.split()[:4] == ["b.small", "7", "1", "1"]


def test_what_is_no_table_of_flavors_is_said():
    """Lost: the place in a playbook, to a traceback."""
    with pytest.raises(AnsibleFilterError, match="needs a mapping of flavors by name before the bar"):
        offers([], [])


def test_what_is_free_and_not_given_to_who_asks_does_not_count():
    """Lost: why a request gets nothing of what is shown as free."""
    small = {"b.small": TYPES["b.small"]}
    answers = asked(board(1), board(2), board(3))
    answers[0]["offers"] = {"b.small": dict(may=1, why=["reserved: 2 b.small for ann"]), "x": dict(may=0, why=[])}
    (found,) = offers(small, answers)
    assert (found["free"], found["most"]) == (1, 3)
    assert found["kept"] == [dict(node="p1", many=2, why=["reserved: 2 b.small for ann"])]
    heading, row, told = offers(small, answers, table=True)
    assert row.split()[:4] == ["b.small", "7", "1", "3"]
    assert told == "b.small: 2 more free on p1, not for you: reserved: 2 b.small for ann"
    answers[0]["offers"] = {"b.small": dict(may=9, why=[])}
    assert [(one["free"], one["kept"]) for one in offers(small, answers)] == [(3, [])]
