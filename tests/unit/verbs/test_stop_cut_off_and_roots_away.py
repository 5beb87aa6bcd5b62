# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop was killed, or was module tilera_boot's, so that the board's state is "shutting down"; and what holds the
roots is not mounted since. If these fail, a start makes an instance that ran a new, empty root in place of the one
that lies on the file system that is to be mounted, and says that all is well.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, root, verb


def killed(site, monkeypatch):
    """Her stop, killed once the outlet was read back as off."""
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_off", lambda self, work: os.kill(os.getpid(), signal.SIGKILL))
        assert site._module("instance", kind="board", instance="jackie", state="stopped", timeout=10) is None


def by_module(site, monkeypatch):
    assert not site.module("tilera_boot", boards=[0], instance="jackie", state="stopped", timeout=10).get("failed")


def away(site):
    """The machine restarted, and what holds the roots was not mounted."""
    for point in reversed(mounts_below(str(site.state / "board-roots"))):
        unmount(point)
    (site.state / "board-roots").rename(site.folder / "roots not mounted")


@pytest.mark.parametrize("stop", [killed, by_module])
@pytest.mark.parametrize("given", [{}, REQUEST])
def test_no_new_root_is_made_for_who_ran(jackie, monkeypatch, stop, given):
    (root(jackie) / "root" / "data").write_text("work")
    stop(jackie, monkeypatch)
    assert (jackie.outlets()["1"], jackie.record(0).state) == ("off", "shutting down")
    away(jackie)
    result = verb(jackie, **given)
    assert "jackie ran from" in result.get("msg", ""), [line["text"] for line in result["lines"]]
    assert not (jackie.state / "board-roots").exists()


@pytest.mark.parametrize("stop", [killed, by_module])
def test_the_reaper_takes_no_stop_for_an_end(jackie, monkeypatch, stop):
    """Lost: the instance of who extended her lease: the database is older, and record and root are not to be seen."""
    stop(jackie, monkeypatch)
    jackie.expire()
    (jackie.state / "claims" / "board0.json").unlink()
    assert jackie.turn()["failed"]
    away(jackie)
    result = jackie.turn()
    with jackie.proxy() as proxy:
        assert proxy.store.claim_of("jackie"), result["said"]
