# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero check`. If these fail, boards are switched all day, or never; or a failing one is not told of."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import hetero
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import check, preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import files_of
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import disks, own_mounts

__all__ = ["disks", "own_mounts"]


@pytest.fixture
def turns(disks, monkeypatch):
    """The boards that a turn checks, and with which limits; board 2 fails."""
    done = []
    (disks.folder / "tftpboot").mkdir(exist_ok=True)
    (disks.folder / "tilera_boards").rename(disks.folder / "tftpboot" / "tilera_boards")
    (disks.folder / "tftpboot" / "tilera_boards").chmod(0o644)
    path = str(disks.folder / "proxy.json")

    def played(files, ids, request, at_once):
        for board in ids:
            done.append((board, request.limits.network_mb_s, request.limits.disk_mb_s))
            with check.Proxy(files, "test") as proxy:
                proxy.store.outcome(board, "check", board != 2)
            found = dict(name=f"board{board}", failed=board == 2, error="board2 failed: ram", wanted_by=None, tests=[])
            yield found

    monkeypatch.setattr(check.check_runs, "results", played)

    def turn(*words, **usual):
        disks.config["check"] = usual
        disks.write()
        done.clear()
        code = hetero.main(["check", "--config", path, *words])
        return code, list(done)

    turn.path = path
    return turn


def test_each_turn_checks_the_board_checked_longest_ago(turns, capsys):
    """Lost: the state of all boards but one; or a day of boards that boot for nothing."""
    assert turns() == (0, [(0, 1.0, 5.0)])
    assert turns(network_mb_s=10) == (0, [(1, 10.0, 5.0)])
    assert capsys.readouterr().out.splitlines()[0].startswith("board0: sound")
    assert turns(boards=5, disk_mb_s=0.5) == (1, [(2, 1.0, 0.5), (3, 1.0, 0.5)])
    assert capsys.readouterr().out.splitlines()[0] == "board2 failed: ram"
    assert turns(boards=5) == (0, []), "none twice within a day"
    assert [board for board, *_limits in turns(boards=5, hours=0)[1]] == [0, 1, 2, 3]
    assert [board for board, *_limits in turns("--all")[1]] == [0, 1, 2, 3]


def test_who_has_a_board_is_left_alone(turns, disks):
    with check.Proxy(files_of(turns.path), "test") as proxy:
        proxy.store.move(0, "maintenance", "its fan rattles")
    assert turns("--all")[1] == [(board, 1.0, 5.0) for board in (1, 2, 3)]


def test_a_node_of_which_no_board_can_be_checked_says_so(turns, disks, capsys):
    """It said nothing and ended well, as if all boards were sound: of a site that names no RAM image, each time."""
    with check.Proxy(files_of(turns.path), "test") as proxy:
        for board in range(4):
            proxy.store.move(board, "maintenance", "its fan rattles")
    assert turns("--all") == (0, [])
    whys = "4 boards: it is in state maintenance (its fan rattles)"
    assert capsys.readouterr().out == f"no board can be checked: {whys}\n"


@pytest.mark.parametrize(("interval", "said"), [("", 0), ("15min", 0), ("now and then", 1)])
def test_an_interval_that_is_none_is_refused_and_none_is_never(interval, said, tmp_path):
    """Lost: the timer, for a unit that does not load, after all else was set up."""
    found = preflight.look(Plan("10.0.2.254", check_interval=interval, state_folder=str(tmp_path)))
    assert sum(str(one).startswith("tftp_proxy_check_interval: ") for one in found.defects) == said


@pytest.mark.parametrize("usual", [{"memory_mb": "much"}, {"network_mb_s": -1}, {"boards": 0}])
def test_limits_that_are_none_are_refused(turns, usual):
    with pytest.raises(HeteroError, match=f"check.{next(iter(usual))}"):
        turns(**usual)
