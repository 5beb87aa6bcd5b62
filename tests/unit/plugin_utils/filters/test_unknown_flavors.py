# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors that limits and reservations name. If these fail, a slip in one makes a limit that limits nothing."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.unknown_flavors import unknown_flavors

FLAVORS = {"tp64.8x8": {}, "tgx.10x10": {}, "12": {}}


def said(table):
    return [f"{one['thing']}: {one['what']}: {one['remedy']}" for one in unknown_flavors(table, FLAVORS, "limits")]


def test_a_misspelt_flavor_of_a_limit_is_a_mistake():
    """Lost: the limit, without a word."""
    table = {"*": 4, "ci": {"nodes": 1}, "guests": {"flavors": {"tgx.10x11": 0, "tgx.10x10": 1, 12: 2, "quantum": 0}}}
    near, none = said(table)
    assert near == 'limits.guests.flavors.tgx.10x11: is "tgx.10x11", which is no flavor: did you mean tgx.10x10?'
    assert none.startswith('limits.guests.flavors.quantum: is "quantum", which is no flavor: name one that ansible-')


def test_a_misspelt_flavor_of_a_reservation_is_one_too():
    """Lost: what to write in its place."""
    table = [{"flavor": "tp64.8x8"}, {"which": [1]}, "ann", {"flavor": "TP64.8X9"}, {"flavor": 12}]
    assert said(table) == ['limits[3].flavor: is "TP64.8X9", which is no flavor: did you mean tp64.8x8?']


@pytest.mark.parametrize("table", ["ann", 1, None, {"ann": {"flavors": ["x"]}}, {"ann": "x"}, [{"flavor": True}]])
def test_what_is_no_table_is_left_to_the_node(table):
    """Lost: all other mistakes, to a traceback of this one."""
    assert said(table) == []


def test_flavors_are_a_mapping():
    """Lost: what is wrong, in a play that uses the filter by itself."""
    with pytest.raises(AnsibleFilterError, match="needs a mapping of flavors"):
        unknown_flavors({}, ["tp64.8x8"], "limits")
