# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances and leases on the page. If these fail, whose an instance is or when it ends is not what it says."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.page.instances import instances, leases
from ansible_collections.hetero.compute.plugins.plugin_utils.page.rack import Node

RUNS = dict(instance="b", owner="ann", state="running", since_seconds=60, flavor="tp64", image="debian", ip="10.0.2.2")


def node(on_host=False, look="running", **said):
    return Node(dict(RUNS, **said), look, "board1", on_host)


def test_by_name_and_with_what_each_has():
    """Lost: a row that one finds."""
    rows = instances([node(), node(instance="a", on_host=True, gpus=["1", "2"]), Node({}, "free", "board3")]).rows
    assert [(row.instance, row.owner, row.gpus, row.note, row.since) for row in rows] == [
        ("a", "ann", "1, 2", None, "1 min"),
        ("b", "ann", None, None, "1 min"),
    ]


def test_why_one_does_not_run():
    """Lost: the note."""
    [row] = instances([node(state="error", look="error", note="no answer")]).rows
    assert (row.note, row.boot) == ("no answer", None)
    assert instances([node(state="error")]).rows[0].note == "-"


def test_the_bars_of_boots_have_a_scale_where_there_are_any():
    """Lost: how long each took."""
    assert instances([node()]).scale is None
    boot = [
        dict(instance="b", phase=phase, seconds=seconds)
        for phase, seconds in (("power", 0.4), ("tftp", 2.0), ("nfs", 4.0), ("running", 5.0))
    ]
    found = instances([node(events=boot)])
    assert found.scale is not None
    assert found.rows[0].boot is not None
    assert instances([node(events=boot, state="error")]).rows[0].boot is None
    assert (found.with_boards, instances([node(on_host=True)]).with_boards) == (True, False)


def test_which_leases_end_the_soonest_first():
    """Lost: who is to extend in time."""
    found = leases([node(expires=8000.0), node(instance="a", expires=900.0), node(instance="c")], 1000.0)
    assert [(one.instance, one.left, one.late) for one in found.ending] == [
        ("a", "1 min ago", True),
        ("b", "in 1 h", False),
    ]
    assert found.open_ended == 1
    assert leases([Node({}, "free", "board1")], 1000.0) is None
    assert leases([node(expires=1000.0)], 1000.0).ending[0].late, "over at that second"
