# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a request. If these fail, a verb acts on another owner's instance, or on half of a request."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.holders import holders


def claim(instance, board, owner="ann", request="lab", created=1.0, ready=True):
    return dict(
        instance=instance, request=request, owner=owner, board=board, created=created, image_hash="h" if ready else None
    )


def results(**claims):
    return [dict(item=item, claims=those, boards=[]) for item, those in claims.items()]


def test_which_node_has_which_part():
    """Lost: the node on which a verb has to act."""
    asked = results(p1=[claim("lab-1", 1), claim("other", 2, request="other")], p2=[claim("lab-2", 4)])
    found = holders(asked, "lab", 2, "ann")
    assert [(part["item"], [one["instance"] for one in part["claims"]]) for part in found["parts"]] == [
        ("p1", ["lab-1"]),
        ("p2", ["lab-2"]),
    ]
    assert (found["surplus"], found["taken"], found["twice"]) == ([], "", [])


def test_of_two_claims_of_one_name_the_oldest_stays():
    """Lost: a board, kept for a claim that another play made later."""
    asked = results(p1=[claim("lab-1", 1, created=5.0, ready=False)], p2=[claim("lab-1", 4, created=2.0, ready=False)])
    found = holders(asked, "lab", None, "ann")
    assert [part["item"] for part in found["parts"]] == ["p2"]
    assert [part["item"] for part in found["surplus"]] == ["p1"]


def test_another_owners_name_is_told():
    """Lost: whose it is."""
    found = holders(results(p1=[claim("lab", 1, owner="bob")]), "lab", 1, "ann")
    assert "bob" in found["taken"]


@pytest.mark.parametrize("given", ["text", {}, [dict(item="p1")], [dict(claims=[])]])
def test_what_are_no_results_is_said(given):
    """Lost: the place in a playbook, to a traceback."""
    with pytest.raises(AnsibleFilterError, match="needs results of board_info and host_info of a loop over owners"):
        holders(given, "lab")
