# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases of all earlier releases, as those wrote them, and what becomes of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.tables import ENERGY, HEALTH, LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import tickets
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

SCORE = ", score INTEGER NOT NULL DEFAULT 100"
#: What came with each schema.
NEW = {2: HEALTH, 3: (ENERGY,), 4: tickets.FIRST_TABLES, 5: ()}
#: Table as it is now → as it was before a schema.
BEFORE = {5: (tickets.TABLE, tickets.FIRST_TABLES[0])}


def tables_of(schema):
    """The statements that made a database of this schema."""
    later = {one for number, those in NEW.items() if number > schema for one in those}
    older = dict(pair for number, pair in BEFORE.items() if number > schema)
    tables = [older.get(one, one) for one in LAYOUT.tables]
    tables = [one for one in tables if one not in later]
    return [one.replace(SCORE, "") for one in tables] if schema < 2 else tables


def columns(path):
    """{table: the columns with their types and defaults}, and the number of the schema."""
    with closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'index')")]
        told = {name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in sorted(names)}
        return told, db.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


@pytest.mark.parametrize("schema", sorted(LAYOUT.upgrades))
def test_a_database_of_each_earlier_release_becomes_one_of_this(path, tmp_path, schema):
    """Lost: every claim of a site, to its first verb after an update that skips releases."""
    with closing(sqlite3.connect(path)) as db:
        for statement in tables_of(schema):
            db.execute(statement)
        db.execute("INSERT INTO boards (board, state) VALUES (2, 'running')")
        db.execute(
            "INSERT INTO claims VALUES (2, 'eve', 'eve', 'jo', '{}', 'demo', 'key', 5.0, NULL, NULL, NULL, 'nfs')"
        )
        db.execute(f"PRAGMA user_version = {schema}")
        db.commit()
    with Store(path, create=False) as looked:
        assert [one.instance for one in looked.claims()] == ["eve"]
        assert (looked.scores(), looked.energies(), looked.tickets.living()) == ({}, {}, [])
    assert (columns(path)[1], backups.copies(path)) == (schema, []), "a look reads a copy"
    with Store(path) as upgraded, Store(str(tmp_path / "new.db")):
        assert (upgraded.record(2).state, upgraded.record(2).claim.instance) == ("running", "eve")
    assert columns(path) == columns(str(tmp_path / "new.db"))
    assert (columns(path)[1], len(backups.copies(path))) == (LAYOUT.schema, 1)


def test_each_schema_has_an_upgrade_to_the_next():
    """Lost: the same, of a release that was forgotten."""
    assert sorted(LAYOUT.upgrades) == list(range(1, LAYOUT.schema))


def test_an_earlier_release_refuses_what_this_one_wrote(path, monkeypatch):
    """Lost: what is kept in tables that it does not know, such as whose turn it is."""
    Store(path).close()
    for schema in LAYOUT.upgrades:
        upgrades = {number: those for number, those in LAYOUT.upgrades.items() if number < schema}
        older = replace(LAYOUT, schema=schema, tables=tuple(tables_of(schema)), upgrades=upgrades)
        monkeypatch.setattr(Store, "layout", older)
        with pytest.raises(HeteroError, match=rf"has schema {LAYOUT.schema}, written by .*: install .* and run"):
            Store(path)
