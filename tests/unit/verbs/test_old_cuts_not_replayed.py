# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event of a cut that never came, or that is long over, is no reason to switch an outlet on."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives

__all__ = ["hasty"]


def killed_before_the_pdu(site, monkeypatch):
    """A stop, killed between its event and the PDU: nothing was switched, jackie runs on."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_line import PduLine

    with monkeypatch.context() as patch:
        patch.setattr(PduLine, "ask", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert site._module("instance", timeout=10, **STOP) is None
    assert site.outlets() == {"1": "on", "2": "on"}
    assert lives(site, 0)
    assert lives(site, 1)


def killed_after_the_cut(site, monkeypatch):
    """A stop of a board that hangs beside carol's, killed between its cut and the look whom that cut."""
    site.provision("carol")
    hangs(site, 0)
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_look_after", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert site._module("instance", timeout=10, **STOP) is None


def answers_again(site, board):
    wires = json.loads((site.folder / "proxy.json").read_text())["boards"]
    site.wire(board, fake={key: value for key, value in wires[str(board)]["fake"].items() if key != "stall"})


def test_a_stop_that_switched_nothing_cut_nobody(jackie, monkeypatch):
    """Lost: the hands of who switched board 0 off by hand, weeks later, because its neighbour hangs meanwhile."""
    jackie.provision("carol")
    hangs(jackie, 0)  # its network is away for an hour
    killed_before_the_pdu(jackie, monkeypatch)
    answers_again(jackie, 0)
    reconcile(jackie)
    assert jackie.record(0).state == "running", "it was never off: so reconcile says itself"
    # weeks later: somebody switches board 0 off by hand (to open its case); carol's board hangs by itself
    jackie.cut(0)
    hangs(jackie, 1)
    third = reconcile(jackie)
    assert jackie.outlets()["1"] == "off", told(third)


@pytest.mark.parametrize("refused", [False, True], ids=["", "another verb failed since"])
def test_one_that_was_stopped_by_hand_stays_off_while_its_neighbour_is_rebooted(jackie, monkeypatch, refused):
    """Lost: the same, after a stop that was killed once it had cut; the tenant next door halts her board days later."""
    killed_after_the_cut(jackie, monkeypatch)
    assert lives(jackie, 1), "she was not cut"
    with jackie.proxy() as proxy:  # that was thirty days ago
        proxy.store._db.write("UPDATE events SET time = time - 2592000")
        proxy.store._db.write("UPDATE boards SET since = since - 2592000")
    kept = jackie.run_folder / "cuts" / "board0.json"
    mark = json.loads(kept.read_text())
    kept.write_text(json.dumps(dict(mark, at=mark["at"] - 2592000)))
    if refused:
        with jackie.proxy() as proxy:
            proxy.store.event(0, "error", "the time is up")
    hangs(jackie, 1)
    result = reconcile(jackie)
    assert jackie.outlets()["1"] == "off", told(result)


def test_a_database_that_was_put_back_replays_no_cut(jackie, monkeypatch):
    """Lost: the same, by a backup of the minute between a killed stop and the next; all was seen to since."""
    killed_after_the_cut(jackie, monkeypatch)
    copy = backups.make(jackie.params["state_db"])
    answers_again(jackie, 0)
    for state in ("running", "stopped"):
        result = jackie.module("instance", timeout=10, kind="board", instance="jackie", state=state)
        assert not result.get("failed"), told(result)
    assert lives(jackie, 1), "nobody was cut"
    for left in ("-wal", "-shm"):
        if os.path.exists(jackie.params["state_db"] + left):
            os.unlink(jackie.params["state_db"] + left)
    shutil.copy(copy, jackie.params["state_db"])
    hangs(jackie, 1)
    result = reconcile(jackie)
    assert jackie.outlets()["1"] == "off", told(result)


def test_one_that_lives_by_another_outlet_since_is_not_given_that_one(jackie, monkeypatch):
    """Lost: the word "nothing is switched" that the same reconcile gives of this board."""
    jackie.provision("carol")
    hangs(jackie, 0)
    killed_before_the_pdu(jackie, monkeypatch)
    answers_again(jackie, 0)
    reconcile(jackie)
    jackie.pdu(board0="off")  # its plug is in another outlet since: the board lives on
    result = reconcile(jackie)
    assert jackie.outlets()["1"] == "off", told(result)
