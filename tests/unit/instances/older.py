# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases as the release before made them, and modules that only look at one."""

from __future__ import annotations

import importlib
import sqlite3
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups

MODULES = "ansible_collections.hetero.compute.plugins.modules."


def as_before(path):
    """A host's database as the release before made it."""
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE tickets")
        db.execute("DROP TABLE went_first")
        db.execute("DROP INDEX one_range_of_ids")
        for column in ("first_id", "mover", "departure"):
            db.execute(f"ALTER TABLE instances DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 1")
    db.close()


def looked_at(path, name, given):
    """What a module says in check mode; the database at `path` is the same after it, byte by byte."""
    module = importlib.import_module(MODULES + name)
    params = {option: spec.get("default") for option, spec in module.SPEC.options.items()}
    before = Path(path).read_bytes()
    result = module.work(dict(params, **given), True)
    assert Path(path).read_bytes() == before, (name, given)
    assert backups.copies(str(path)) == [], (name, given)
    assert not result.get("failed"), (name, given, result)
    return result
