# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The room loses its power while a stop looks whom its outlet cut; everything is dark, and comes back with the proxy.
If these fail, the next run says that jackie's outlet feeds carol's board, writes that into carol's record, and switches
the outlet of the instance that is being stopped on again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import stops
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import END, STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.mark.parametrize("again", ["stop", "end", "reconcile", "reaper"])
def test_a_room_without_power_is_no_swapped_plug(jackie, monkeypatch, again):
    """Plugs and wiring are right."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    hangs(jackie, 0)
    before = json.loads(record(jackie, 1).read_text())
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_look_after", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert jackie._module("instance", timeout=10, **STOP) is None
    # the power is back after a minute: the outlets are as they were, and carol's board is in its firmware yet
    for name in os.listdir(jackie.run_folder):
        if name != "fake-boots":
            path = jackie.run_folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    boot = jackie.run_folder / "fake-boots" / "board1"
    boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))
    assert jackie.outlets() == {"1": "off", "2": "on"}
    if again == "reconcile":
        result = reconcile(jackie)
    elif again == "reaper":
        jackie.expire()
        result = jackie.turn()
    else:
        result = jackie.module("instance", timeout=10, **(STOP if again == "stop" else END))
    after = json.loads(record(jackie, 1).read_text())
    said = told(result) + str(result.get("said")), after.get("fed"), jackie.outlets(), jackie.record(0).state
    assert after.get("fed") == before.get("fed"), said
    assert jackie.outlets()["1"] == "off", said
