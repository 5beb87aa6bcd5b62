# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a database that a timer and a person make at one moment.

If this fails, a copy is taken for checked that another has only begun.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups


def test_one_copy_is_made_at_a_time(tmp_path, monkeypatch):
    database, real, others, seen = str(tmp_path / "state.db"), backups._copy, [], []
    with closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE claims (name)")
        db.commit()

    def another():
        seen.append(backups.make(database))

    def copy(source, new, whole):
        if not others:
            others.append(threading.Thread(target=another))
            others[0].start()
            others[0].join(0.5)
            assert others[0].is_alive(), "it waits for this one"
        real(source, new, whole)

    monkeypatch.setattr(backups, "_copy", copy)
    made = backups.make(database)
    others[0].join(60)
    assert seen == [None], "nothing changed since the first copy"
    assert backups.copies(database) == [made]
    assert backups.newest_good(database) == made
