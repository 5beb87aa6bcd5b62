# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node remembers of instances that ended with their lease. If these fail, "there is no such instance" is all
that somebody hears whose work is gone.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import ended
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store as HostStore

FAILED = "jackie of jo: its lease is over, and it could not be ended: pdu-a is away"


def over(instance="jackie", owner="jo", done="off, cleaned, free"):
    return ended.told(instance, owner, "2 min", done)


def event(phase, text, instance="jackie", time=5.0):
    return dict(instance=instance, phase=phase, text=text, time=time)


@pytest.mark.parametrize("owner", ["jo", "", "jo of eve: its lease is over since 1 s; x", "jo; lab"])
def test_an_event_of_a_reaper_is_read_as_it_was_written(owner):
    """Lost: whose it was, so that another owner of an odd name hears of it."""
    assert ended.read([event("reap", over(owner=owner))]) == [dict(instance="jackie", owner=owner, time=5.0)]


@pytest.mark.parametrize(
    "newest",
    [event("release", "released by jackie"), event("reap", FAILED), event("release", over())],
)
def test_only_the_last_end_of_a_name_counts(newest):
    """Lost: the truth of an instance that its owner ended, and that had the name of one that ended with its lease."""
    assert ended.read([newest, event("reap", over())]) == []


@pytest.mark.parametrize("store", [Store, HostStore])
def test_a_store_finds_what_one_name_stands_for(tmp_path, store):
    """Lost: the end of one of several; or that of somebody else's, of a name that begins alike."""
    with store(str(tmp_path / "state.db")) as node:
        for instance in ("lab", "lab-1", "lab-22", "lab-x", "label"):
            board = [0] if store is Store else []
            words = dict(instance=instance) if store is Store else {}
            node.event(*(board or [instance]), "release", f"released by {instance}", **words)
            node.event(*(board or [instance]), "reap", over(instance), **words)
        assert {one["instance"] for one in node.ended("lab")} == {"lab", "lab-1", "lab-22"}
        assert node.ended("la") == []
