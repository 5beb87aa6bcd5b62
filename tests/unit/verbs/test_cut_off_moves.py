# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move that was killed, and that nobody takes up: its instance ends, or gets a new root. If these fail, what an ended
instance had stays on the proxy, its name and a board are nobody's for ever, or a broken board is given to the next.

Tests boards/work/cut_off_moves.py, boards/verbs/ended_moves.py, boards/verbs/left_boards.py.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import left_boards, migration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import cut_off_moves
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.sweep.killing import run_alone
from ansible_collections.hetero.compute.tests.unit.verbs.test_migrated import killed_in, migrate, root, wrote

WHY = "its fan rattles"


@pytest.fixture
def hers(jackie):
    """Jackie runs on board 0 of two, and has written something."""
    (root(jackie) / "root" / "data").write_text("the tenant's own")
    return jackie


def verb(site, state, **given):
    return site.module("instance", kind="board", instance="jackie", state=state, timeout=10, **given)


def turn(site):
    """What the reaper says of boards that are kept."""
    said = []

    def work():
        with site.proxy() as proxy:
            return dict(done=left_boards.take_up(proxy, "reap", said.append), said=said)

    result = run_alone(site.points, work)
    assert result["done"] is True, result
    return result["said"]


@pytest.mark.parametrize("end", ["terminate", "lease"])
def test_the_root_goes_with_an_instance_that_ends_between_claim_and_root(hers, monkeypatch, end):
    """Lost: what she deleted, which stays on the proxy; her name, and a board, for everybody."""
    killed_in(hers, monkeypatch, "_bring")
    if end == "terminate":
        assert not verb(hers, "absent").get("failed")
    else:
        hers.expire()
        assert not hers.turn().get("failed")
    assert list((hers.state / "board-roots").glob("fs_*")) == []
    assert turn(hers) == ["board0: it was kept for jackie, which needs it no more: off, cleaned, free"]
    assert hers.what_is_there() == hers.clean()
    assert not any(result.get("failed") for result in hers.provision())


def test_a_rebuild_between_claim_and_root_leaves_no_other_root(hers, monkeypatch):
    """Lost: the same, to one who asked for a new root."""
    killed_in(hers, monkeypatch, "_bring")
    again = verb(hers, "rebuilt", fresh=True)
    assert not again.get("failed"), again
    turn(hers)
    assert hers.what_is_there() == hers.running(None, "jackie")
    assert not (root(hers, 1) / "root" / "data").exists()


def test_while_the_board_before_is_on_nothing_of_it_is_removed(hers, monkeypatch):
    """Lost: the root of whoever is at work there."""
    killed_in(hers, monkeypatch, "_bring")
    hers.pdu(board0="on")
    result = verb(hers, "absent")
    assert "jackie's root lies in its place since a move was cut off, and its outlet is on" in result["msg"], result
    assert (root(hers, 0).parent / "made.json").exists()
    hers.pdu(board0="off")
    assert not verb(hers, "absent").get("failed")
    assert list((hers.state / "board-roots").glob("fs_*")) == []


def test_a_board_that_was_left_is_freed_once_the_instance_runs(hers, monkeypatch):
    """Lost: a board, for everybody, to a play that was killed in its last step."""
    killed_in(hers, monkeypatch, "let_go")
    assert turn(hers) == ["board0: it was kept for jackie, which needs it no more: off, cleaned, free"]
    assert hers.what_is_there() == hers.running(None, "jackie")
    assert turn(hers) == []


def test_a_move_that_may_go_on_has_its_board(hers, monkeypatch):
    """Lost: the board that a killed play had chosen, to the next minute."""
    killed_in(hers, monkeypatch, "_give")
    assert turn(hers) == []
    assert hers.record(1).note == "it is kept for jackie, which moves there"


@pytest.mark.parametrize("how", ["killed", "refused"])
def test_a_board_out_of_use_stays_so_when_its_move_is_cut_off(hers, monkeypatch, how):
    """Lost: that the board is broken, for whoever gets it next."""
    with hers.proxy() as proxy:
        proxy.store.move(0, "error", WHY)
    if how == "killed":
        killed_in(hers, monkeypatch, "_give")
    else:

        def taken(*_given):
            raise Refused("was taken meanwhile", "board1", "run this again")

        with monkeypatch.context() as patch:
            patch.setattr(migration.Migration, "_give", taken)
            assert migrate(hers)["failed"]
        assert (hers.record(0).state, hers.record(0).note) == ("error", WHY)
    assert not migrate(hers).get("failed")
    assert (hers.board_of("jackie"), wrote(hers, 1)) == (1, True)
    note = f"{WHY} (it was switched off since, and jackie has left it)"
    assert (hers.record(0).state, hers.record(0).note) == ("error", note)


def test_a_board_that_was_mended_since_is_a_sound_one(hers, monkeypatch):
    """Lost: a board, to a fault that a person has mended."""
    with hers.proxy() as proxy:
        proxy.store.move(0, "error", WHY)
    killed_in(hers, monkeypatch, "_give")
    assert not verb(hers, "running").get("failed")
    assert not migrate(hers).get("failed")
    assert hers.record(0).state == "power off"


def test_a_root_whose_folder_is_a_mount_point_stays(hers):
    """Lost: an instance that no verb brings up any more: its claim has moved, and its root cannot."""
    folder = str(root(hers).parent)
    assert not verb(hers, "stopped").get("failed")
    subprocess.run(["umount", str(root(hers))], check=True)
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    assert not verb(hers, "running").get("failed")
    before = hers.outlets()
    result = migrate(hers)
    assert f"{folder}: is a mount point, and what belongs here has to lie in the folder itself" in result["msg"], result
    assert (hers.board_of("jackie"), hers.outlets()) == (0, before)
    assert not verb(hers, "stopped").get("failed")
    subprocess.run(["umount", str(root(hers))], check=True)
    subprocess.run(["umount", folder], check=True)
    assert not migrate(hers).get("failed")
    assert wrote(hers, 1)


def test_where_an_instance_came_from_is_read_from_its_boards_newest_claim(hers, monkeypatch):
    """Lost: the root that a cut-off move left behind, for which a new one is made; or another board's."""

    def before():
        with hers.proxy() as proxy:
            return cut_off_moves.came_by(proxy, proxy.store.claim_of("jackie"))

    assert before() is None
    killed_in(hers, monkeypatch, "_bring")
    assert before() == "board0"
    assert not verb(hers, "rebuilt", fresh=True).get("failed")
    assert before() == "board0", "it stays said, for whoever reads the events"
