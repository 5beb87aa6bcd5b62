# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's clock that jumps while its boards are in use: what came first is not the clock's to say."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import free_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline

HOUR = 3600.0


@pytest.fixture(params=[-HOUR, -40 * 365 * 24 * HOUR, HOUR], ids=["an hour back", "to 1986", "an hour on"])
def jump(request, monkeypatch):
    """Call it, and the clock jumps."""
    now = time.time
    return lambda: monkeypatch.setattr(time, "time", lambda: now() + request.param)


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch):
    """These boards have no root and no NFS server: nothing is left of them but their outlet's state."""
    monkeypatch.setattr(free_boards, "leftovers", lambda proxy, board: [])


def release(site, instance):
    with site.proxy() as proxy:
        return board_releases.absent(proxy, Instances(instance, "jo"), Change(False), Deadline(60))


def test_a_board_is_given_back(site, jump):
    """Lost: a board that nobody can free until the clock has passed the time of its claim again."""
    site.claim(0)
    assert site.run("start", 0)["boards"][0]["state"] == "running"
    jump()
    assert site.run("stop", 0)["boards"][0]["state"] == "shutting down"
    release(site, "vm0")
    assert (site.record(0).state, site.record(0).claim) == ("power off", None)


def test_a_look_from_before_the_claim_does_not_count(site, jump):
    """Lost: a board handed on while the last tenant's system runs, since its outlet was seen off in the future."""
    site.run("stop", 0)
    jump()
    site.claim(0)
    site.cut(0, "on")
    assert "was not looked at since the claim" in release(site, "vm0")["msg"]
    assert site.record(0).claim


def test_a_running_board_is_left_alone_and_a_dark_one_brought_back(site, jump):
    """Lost: the work on every board of a proxy whose clock was set right."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    jump()
    assert site.run("start", 0, 1)["changed"] is False
    site.cut(1)
    result = site.run("start", 0, 1)
    assert [(board["changed"], board["state"]) for board in result["boards"]] == [(False, "running"), (True, "running")]


def test_a_boot_under_a_jump_ends(site, jump):
    """Lost: a rerun that waits an hour for a boot which began in the future."""
    site.claim(0)
    site.play(0, tftp=0.2, nfs=0.4, running=0.8)
    site.run("start", 0, wait=False)
    jump()
    assert site.run("start", 0)["boards"][0]["state"] == "running"
