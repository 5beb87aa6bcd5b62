# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a database under a clock that jumps. If these fail, a damaged database is put back from before the claims
that matter, though newer copies were made.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups

YEAR = 365 * 86400.0


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


def copy(path, board):
    """Something happens, and a copy is made of it."""
    with Store(path) as store:
        store.event(board, "claim", "somebody's")
        assert backups.make(path)


def newest(path):
    """What the newest copy has."""
    with closing(sqlite3.connect(backups.copies(path)[-1])) as db:
        return [row[0] for row in db.execute("SELECT board FROM events ORDER BY id")]


@pytest.mark.parametrize("jumps", [[0, -YEAR, -YEAR, -YEAR, -YEAR], [YEAR, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
def test_the_newest_copy_is_the_last_one_whatever_the_clock_says(path, monkeypatch, jumps):
    """Lost: each copy as soon as it is made, once the clock was set back; or an old one is taken for the newest."""
    stopped = time.time()
    for board, jump in enumerate(jumps):
        monkeypatch.setattr(time, "gmtime", lambda _seconds=None, real=time.gmtime, at=stopped + jump: real(at))
        copy(path, board)
        assert newest(path) == list(range(board + 1))
        assert len(backups.copies(path)) == board + 1
        assert backups.make(path) is None, "nothing changed since"
        assert backups.copies(path)[-1] in backups.how_to_restore(path)
        monkeypatch.undo()
