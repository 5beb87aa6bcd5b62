# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody cuts jackie's outlet by hand, reconcile records the board as off, and he switches it on again: it boots by
its entry, and jackie goes on with her work. If this fails, her next start or request, which leaves a board at work
alone, cuts its power.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, found, reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


def on_by_itself(site, phase):
    """Board 0 has its power again, and comes as far as before this phase of its boot, as far as it shows."""
    site.pdu(board0="on")
    path = site.run_folder / "fake-boots" / "board0"
    now = json.loads(path.read_text())
    path.write_text(json.dumps(dict(now, on=time.monotonic(), boots=now["boots"] + 1)))
    fake = json.loads((site.folder / "proxy.json").read_text())["boards"]["0"]["fake"]
    site.wire(0, fake=dict(fake, stall=phase))


@pytest.mark.parametrize("reconciled", ["", "reconcile", "reconcile twice"])
@pytest.mark.parametrize("shows", ["its root is mounted", "its root was written to"])
def test_who_is_at_work_is_not_cut_by_a_start(jackie, shows, reconciled):
    """Lost: what jackie did since; her sshd hangs, as it does where a machine swaps."""
    jackie.cut(0)
    told = [found(reconcile(jackie))] if reconciled else []
    on_by_itself(jackie, "running" if shows == "its root is mounted" else "tftp")
    if shows == "its root was written to":
        (jackie.state / "board-roots" / "fs_0" / "root" / "root" / "data").write_text("her work")
    told += [found(reconcile(jackie))] if "twice" in reconciled else []
    assert jackie.record(0).state == ("power off" if reconciled == "reconcile" else "running"), told
    before = [event.text for event in jackie.events(0, "power")]
    result = boot(jackie)
    after = [event.text for event in jackie.events(0, "power")]
    assert after == before, (told, jackie.record(0).state, after, result.get("msg"))
    assert "its tenant's work goes on" in result["msg"]


@pytest.mark.parametrize("reconciled", [False, True], ids=["", "reconcile"])
def test_whose_root_nobody_used_since_she_was_stopped_is_started(jackie, reconciled):
    """Lost: the start of each stopped instance whose outlet came on with the room's power."""
    assert not stop(jackie).get("failed")
    on_by_itself(jackie, "tftp")
    told = found(reconcile(jackie)) if reconciled else None
    assert jackie.record(0).state == "power off", told
    before = len(jackie.events(0, "power"))
    boot(jackie)
    assert "on → off → on, read back" in jackie.events(0, "power")[before].text, told
