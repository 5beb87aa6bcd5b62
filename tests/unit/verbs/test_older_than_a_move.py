# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node's database that is put back from the middle of a move, when a board was kept for the instance that
moves. It runs on that board by now, and is silent. If these fail, its power is cut, and with it its tenant's work.

Tests boards/work/move_targets.py, boards/work/cut_off_moves.py, boards/verbs/migration.py, boards/verbs/ended_moves.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import migration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_cut_off_moves import hers, turn
from ansible_collections.hetero.compute.tests.unit.verbs.test_migrated import killed_in, migrate, wrote

__all__ = ["hers"]

SILENT = dict(tftp=0.0, nfs=0.0, running=86400.0)


def migrated(site):
    assert migrate(site)["failed"]


def reaped(site):
    assert turn(site) == []


def reconciled(site):
    """No root from which a board runs is to be put elsewhere by hand: a second board would run from it there."""
    assert "mv -T" not in str(site.module("board_reconcile", timeout=10))


def rebuilt(site):
    """A new root would be a second machine under her name, beside the one that is there."""
    result = site.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=10)
    assert result.get("failed"), result
    assert "jackie's" in result["msg"]


def told(site):
    """As an operator does to whom the wiring was named as what is in doubt, and then her user."""
    for _time in range(2):
        site.module("board_reconcile", timeout=10, adopt=["jackie"])
    reaped(site)
    migrated(site)
    reaped(site)


def put_back(site, copy, board):
    """The database is the copy; the board on which jackie runs shows no key for now."""
    shutil.copy(copy, site.params["state_db"])
    site.wire(board, fake=SILENT)


def is_on(site, board):
    assert site.outlets() == {"1": "on" if board == 0 else "off", "2": "on" if board == 1 else "off"}
    return wrote(site, board)


@pytest.mark.parametrize("who", [migrated, reaped, reconciled, rebuilt, told])
def test_of_a_board_that_was_kept_as_one_to_go_to(hers, monkeypatch, who):
    """Lost: what she works on, on the board to which she has moved since."""
    keep = migration.Migration._keep

    def kept(move, new):
        keep(move, new)
        backups.make(hers.params["state_db"])

    with monkeypatch.context() as patch:
        patch.setattr(migration.Migration, "_keep", kept)
        assert not migrate(hers).get("failed")
    (copy,) = backups.copies(hers.params["state_db"])
    put_back(hers, copy, 1)
    assert (hers.board_of("jackie"), hers.record(1).note) == (0, "it is kept for jackie, which moves there")
    who(hers)
    assert is_on(hers, 1)


@pytest.mark.parametrize("harm", ["{", None])
def test_of_a_board_whose_record_is_damaged_or_gone(hers, harm):
    """Lost: her root, which two boards run from once the printed command was typed; or one life, to a second machine.

    The database is from before the move.
    """
    copy = backups.make(hers.params["state_db"])
    assert not migrate(hers).get("failed")
    put_back(hers, copy, 1)
    with hers.proxy() as proxy:
        ((path, _kept),) = proxy.store.kept_anywhere()
    os.unlink(path)
    if harm:
        Path(path).write_text(harm)
    reconciled(hers)
    result = hers.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=10)
    assert "jackie: board1 may be jackie's since a move: its root lies there" in result["msg"], result
    start = hers.module("instance", kind="board", instance="jackie", state="running", timeout=10)
    assert start.get("failed"), start
    assert is_on(hers, 1)


@pytest.mark.parametrize("who", [migrated, reaped, reconciled, rebuilt, told])
def test_of_a_board_that_was_kept_as_the_way_back(hers, monkeypatch, who):
    """Lost: the same, on the board to which she has moved back since."""
    killed_in(hers, monkeypatch, "let_go")
    copy = backups.make(hers.params["state_db"])
    assert not migrate(hers, board=0).get("failed")
    put_back(hers, copy, 0)
    assert (hers.board_of("jackie"), hers.record(0).claim) == (1, None)
    who(hers)
    assert is_on(hers, 0)
