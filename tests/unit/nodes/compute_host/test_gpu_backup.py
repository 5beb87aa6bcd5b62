# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-backup`: without it, who has which instance is lost with the one file that knows it.

Tests nodes/compute_host/backup.py.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store as BoardStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.tables import mark_beside
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import backup


@pytest.fixture
def host(tmp_path):
    config = tmp_path / "host.json"
    config.write_text(json.dumps({"state_folder": str(tmp_path / "state")}))
    return tmp_path / "state" / "host.db", ["--config", str(config)]


def test_copies_of_a_host_that_is_a_proxy_too(host, capsys):
    """Two databases in one folder: a copy of the one must never be offered for the other."""
    database, arguments = host
    assert backup.main(arguments) == 0
    assert "nothing was ever claimed" in capsys.readouterr().out
    with Store(str(database)) as store, BoardStore(str(database.with_name("state.db"))):
        store.event("ml-1", "claim", "jackie asked")
        assert backup.main(arguments) == 0
        made = capsys.readouterr().out.strip()
        assert backup.main(arguments) == 0
        assert capsys.readouterr().out == "nothing changed since the last copy\n"
        of_boards = backups.make(str(database.with_name("state.db")))
    assert backups.copies(str(database)) == [made]
    assert os.path.basename(made).startswith("host-")
    assert backups.copies(str(database.with_name("state.db"))) == [of_boards]
    with Store(made, create=False) as copy:
        assert [event.text for event in copy.events(instance="ml-1")] == ["jackie asked"]


def test_an_error_about_a_damaged_database_names_the_copy(host, capsys):
    database, arguments = host
    with Store(str(database)) as store:
        store.event("ml-1", "claim", "jackie asked")
    backup.main(arguments)
    made = capsys.readouterr().out.strip()
    with open(database, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(database) - 4096))
    with pytest.raises(HeteroError) as error, Store(str(database)) as store:
        store.event("ml-1", "claim", "again")
    assert f" && cp -p {made} {database} and then" in str(error.value)
    damaged = Path(database).read_bytes()
    subprocess.run(["sh", "-ec", re.search(r"run on node \S+: (.+?) and then", str(error.value))[1]], check=True)
    aside = Path(database).parent / "backups" / "aside"
    assert (aside / "host.db").read_bytes() == damaged, "it is kept"
    with Store(str(database)) as store:
        assert [event.text for event in store.events(instance="ml-1")] == ["jackie asked"]
    # reconcile is to see that copy before anybody is given anything
    assert Path(mark_beside(str(database))).exists()


def test_a_database_of_a_newer_release_is_not_copied(host):
    """A copy by tools that do not know what is in it would be offered as the way back."""
    database, arguments = host
    Store(str(database)).close()
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("PRAGMA application_id = 3002001")
    with pytest.raises(HeteroError, match=r"written by release 3\.2\.1"):
        backup.main(arguments)
    assert backups.copies(str(database)) == []
