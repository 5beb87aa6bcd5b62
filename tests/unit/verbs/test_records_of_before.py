# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a claim that ended before lies in the place of a later claim's, as after claims/ was put back from a
backup: the later one's own is lost. If these fail, its lease ends by an older database, which knows of no extension.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import claim_of, found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


@pytest.fixture(params=["lost", "unreadable", "alice's of before"])
def older(site, request):
    """Jackie's lease was extended; the database is a copy from before that, and her record is not there."""
    assert not any(result.get("failed") for result in site.provision("alice"))
    before = record(site).read_text()
    assert not any(result.get("failed") for result in [*site.terminate("alice"), *site.provision()])
    site.expire()
    copy = backups.make(site.params["state_db"])
    with site.proxy() as proxy:
        proxy.store.put("jackie", expires=time.time() + 172800)
    put_back(site, copy)
    record(site).unlink()
    if request.param != "lost":
        record(site).write_text("{" if request.param == "unreadable" else before)
    return site


@pytest.mark.parametrize("first", ["reap", "reconcile"])
def test_a_lease_is_not_ended_by_the_database_alone(older, first):
    """Lost: jackie's root, two days before the end that she was told."""
    if first == "reconcile":
        reconcile(older)
    (result,) = older.reap()
    assert claim_of(older), result["said"]
    assert (older.state / "board-roots" / "fs_0").exists()


def test_an_operator_has_the_record_written_anew(older):
    """Lost: the way out: nobody says what the lease waits for, or the word for it is not taken."""
    (board, _other) = older.module("board_info")["boards"]
    ((text, done),) = found(reconcile(older))
    assert (done, "-e adopt=jackie has it written anew" in text) == (None, True), text
    assert "-e adopt=jackie" in board["note"]
    done = found(reconcile(older, adopt=["jackie"]))[0][1]
    assert done == "written anew, the record only (root and board are not touched)"
    assert json.loads(record(older).read_text())["claim"]["instance"] == "jackie"
    assert not older.turn()["failed"]
    assert older.what_is_there() == older.clean()
