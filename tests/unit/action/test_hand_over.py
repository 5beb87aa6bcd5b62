# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task by which verbs end. If these fail, a verb that was not done is told as done, or nobody learns how to log in.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.action import hand_over as action
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_files_of_ways_in import KEY

GIVEN = dict(instance="jackie", name="board0", ip="10.0.2.1", known_hosts=KEY, until="until noon")
PLAN = dict(parts=[dict(item="p1", claims=[dict(instance="jackie")])])
DONE = dict(p1=dict(_done=dict(instances=[GIVEN], changed=True)))
WAY, LEASE = "jackie is running on board0: ssh root@10.0.2.1", "jackie has board0, lease: until noon"


@pytest.fixture
def hand_over(monkeypatch):
    """A function that runs the task; it returns (the lines that people saw, the result)."""

    def run(said=DONE, check=False, **args):  # pylint: disable=dangerous-default-value
        lines = []
        monkeypatch.setattr(action, "tell", lines.append)
        task = SimpleNamespace(
            args=dict(plan=PLAN, **args), async_val=0, check_mode=check, action="hetero.compute.hand_over"
        )
        shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        plugin = action.ActionModule(task, shell, None, None, None, None)
        return lines, plugin.run(None, {"hostvars": said})

    return run


def test_what_was_brought_up_is_handed_over(hand_over, tmp_path):
    """Lost: the way in, and its line; a job's artifacts."""
    assert hand_over() == ([WAY, LEASE], dict(changed=False))
    lines, result = hand_over(folder=str(tmp_path), options=["ProxyJump p1"], stats=True)
    assert (result["changed"], lines[1]) == (True, LEASE)
    assert "/jackie jackie" in lines[0]
    assert (tmp_path / "jackie").read_text().endswith("ProxyJump p1\n")
    given = dict(data=dict(hetero_instances=[GIVEN]), per_host=False, aggregate=True)
    assert result["ansible_stats"] == given


def test_of_a_new_lease_only_that_is_told(hand_over, tmp_path):
    assert hand_over(says="leases", folder=str(tmp_path)) == ([LEASE], dict(changed=False))
    assert hand_over(says="nothing", folder=str(tmp_path)) == ([], dict(changed=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [dict(), dict(check=True), dict(says="nothing")])
def test_a_node_that_did_not_do_its_part_fails_the_verb(hand_over, tmp_path, how):
    """Lost: that jackie does not run, of a node that was lost or was never asked."""
    for said in (dict(p1={}), dict(p1=dict(_done=dict(unreachable=True, msg="no route")))):
        lines, result = hand_over(said, folder=str(tmp_path), **how)
        assert (lines, result["failed"], result["undone"]) == ([], True, ["p1"])
        assert result["msg"].startswith("p1 did not do it, or broke off, as is said above.")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_keeps_and_says_nothing(hand_over, tmp_path):
    """Lost: a folder of files for instances that are not there."""
    assert hand_over(check=True, folder=str(tmp_path), stats=True) == ([], dict(changed=False))
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_missed_where_it_moved_meanwhile_is_no_success(hand_over):
    """Lost: money, to an instance that runs on another host, and was said to have ended."""
    gone = dict(_done=dict(instances=[], left=dict(jackie="gpu2"), changed=False))
    _lines, result = hand_over(dict(p1=gone), says="nothing")
    told = "jackie moved to gpu2 while it was ended on p1, and may run there: run this again, which ends it there"
    assert (result["failed"], result["msg"]) == (True, told)
    _lines, result = hand_over(dict(p1=dict(_done=dict(gone["_done"], left=dict(other="gpu2")))), says="nothing")
    assert not result.get("failed"), "a node fails the verb by another's instance"
