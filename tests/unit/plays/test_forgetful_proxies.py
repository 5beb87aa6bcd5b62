# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks against a proxy whose state database is gone. If these fail, an operator is told that nothing is there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_status_and_terminate_say_that_the_database_is_gone(proxies):
    """Lost: the word of it. `terminate_instance --check` said "no such instance", rc 0, of one that runs."""
    folders, plays = proxies
    path = Path(folders["p1"].state_db)
    with Store(str(path), records=str(path.parent / "claims")) as store:
        store.claim("jackie", ["jackie"], ClaimTerms("jo", {"name": "tp64.8x8"}, "debian", KEY), [0])
    copy = Path(backups.make(str(path))).name
    path.unlink()
    for rc, output in (
        plays.play("status"),
        plays.play("terminate_instance", "--check", instance="jackie"),
        plays.play("reconcile", "--check"),
    ):
        said = " ".join(output.split())
        assert rc != 0, output
        assert "/var/lib/hetero/state.db: is not there, and instances were made on node " in said
        assert f"cp -p /var/lib/hetero/backups/{copy} /var/lib/hetero/state.db and then" in said
        assert "no such instance" not in said
    assert not path.exists()


def test_no_verb_says_that_there_is_none_of_which_a_record_lies_there(proxies):
    """Lost: a board, on which dave's instance runs on: an older copy of the database was put back, as was said."""
    folders, plays = proxies
    path = Path(folders["p1"].state_db)
    with Store(str(path), records=str(path.parent / "claims")) as store:
        copy = backups.make(str(path))
        store.claim("dave", ["dave"], ClaimTerms("jo", {"name": "tp64.8x8"}, "debian", KEY), [1])
        store.put("dave", image_hash="0" * 64)
    for left in path.parent.glob("state.db*"):
        left.unlink()
    shutil.copy(copy, path)
    verbs = ("terminate_instance", "stop_instance", "start_instance", "reboot_instance", "console")
    started = [plays.start(verb, instance="dave") for verb in verbs]
    started.append(plays.start("extend_instance", instance="dave", hours="2"))
    started.append(plays.start("rebuild_instance", instance="dave"))
    for process in started:
        rc, output = plays.end(process, limit=3000)
        said = " ".join(output.split())
        assert rc == 2, output
        assert f"dave on p1: no claim of it is in the database of {THIS_NODE}, which may be older than that" in said
        assert "board1 has the record of its claim /var/lib/hetero/claims/board1.json" in said
        assert "reconcile -e adopt=dave" in said
        assert "no such instance" not in said
        assert "There is no instance dave" not in said
    rc, output = plays.play("terminate_instance", instance="dave", without="p1")
    assert (rc, "dave: no such instance on p2" in output) == (0, True), output


def test_a_name_that_was_never_here_is_ended_beside_a_record_that_cannot_be_read(proxies):
    """Lost: the plain answer, in each play of everybody, by one damaged file; or the word by which it is mended."""
    folders, plays = proxies
    path = Path(folders["p1"].state_db)
    with Store(str(path), records=str(path.parent / "claims")) as store:
        store.power_seen(1, "off")
    (path.parent / "claims").mkdir(exist_ok=True)
    (path.parent / "claims" / "board1.json").write_text("{")
    rc, output = plays.play("terminate_instance", instance="bob")
    said = " ".join(output.split())
    assert rc == 0, output
    assert "bob: no such instance on p1, p2" in said
    assert "board1 on p1: nothing else is there of board1, which is off: /var/lib/hetero/claims/board1.json" in said
