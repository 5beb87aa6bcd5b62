# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy node alone loses its power between a stop's cut and its look whom that cut; the plugs were swapped. If they
fail, the stop that is run again says that all is well, names nobody, and Carol's board stays dark.
"""

from __future__ import annotations

import os
import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import END, STOP, killed, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, plugs, swapped

__all__ = ["hasty", "swapped"]


def restarted(site):
    """The proxy node has booted since: what lies below /run is gone."""
    for name in os.listdir(site.run_folder):
        if name != "fake-boots":
            path = site.run_folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("again", ["stop", "reconcile", "end"])
def test_who_may_have_been_cut_is_told_of(swapped, monkeypatch, again):
    """Lost: every word of what took Carol's power, although the event before the cut names her board."""
    hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **STOP)
    restarted(swapped)
    given = END if again == "end" else STOP
    result = reconcile(swapped) if again == "reconcile" else swapped.module("instance", timeout=10, **given)
    said = told(result) + str([line["text"] for line in result["lines"]])
    assert "carol on board1 answered until pdu-a outlet 1 was switched off for board0" in said, said
    assert (result.get("failed", False), swapped.outlets()) == (False, {"1": "off", "2": "on"}), said
    later = {one["board"]: str(one["found"]) for one in reconcile(swapped)["boards"]}
    assert "may have lost power by that" in later[0] + later[1], "until it is seen to live"
    assert "may have lost power by that" in later[1], "beside the word that it is on and silent"
    assert len([event for event in swapped.events(1, "wiring") if "may have lost" in event.text]) == 1


def test_who_lives_again_is_told_of_no_more(swapped, monkeypatch):
    """Lost: the worth of that word, which stays for ever."""
    hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **STOP)
    restarted(swapped)
    assert "may have lost power by that" in told(reconcile(swapped))
    plugs(swapped, False)
    assert not boot(swapped, "rebooted", 1, "carol", how="hard").get("failed")
    hangs(swapped, 1)
    assert "may have lost power by that" not in told(reconcile(swapped))
