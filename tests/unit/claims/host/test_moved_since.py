# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's database is put back from before a move, whose record is newer. If these fail, the former root of an
instance starts beside the one that its tenant works on, or one that runs is removed as if it never had.

Tests claims/host/store.py, claims/host/claim_copies.py. Whole hosts: instances/guests/test_moves_of_restored_hosts.py.
"""

from __future__ import annotations

import shutil
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.claim_records import Arrival
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

ROOM = dict(memory_mb=4096, vcpus=4, local_gb=40)
FROM = Arrival(created=1764430000.25, expires=None, note="moves from kvm1")


class Host:
    """win is claimed here, and made."""

    def __init__(self, folder, arrives=None):
        self.path, self.copied = folder / "host.db", folder / "copied.db"
        with Store(str(self.path)) as store:
            asked = Asked("win", "alice", dict(name="cg1"), "box", KEY, "kvm", arrives=arrives)
            store.claim(asked, ROOM, None, [])
            store.put("win", container="domain:win", host_key="ssh-ed25519 k", image_hash="ab")

    def go(self, *states):
        with Store(str(self.path)) as store:
            for state, note in states:
                store.put("win", state=state, note=note)

    def copy(self):
        shutil.copy(self.path, self.copied)

    def put_back(self):
        shutil.copy(self.copied, self.path)

    def look(self, dry=False):
        """((state, note) as a verb sees it, the state in the database, that in the record)."""
        with Store(str(self.path)) as store:
            claim = store.as_recorded(store.claim_of("win"), lambda kept: True, dry)
            return (claim.state, claim.note), store.claim_of("win").state, store.kept("win").state


@pytest.mark.parametrize("before", ["running", "stopped"])
def test_one_that_has_left_since_is_leaving(tmp_path, before):
    """Lost: one life: its former host starts it, as by its database it never left."""
    host = Host(tmp_path)
    host.go((before, ""))
    host.copy()
    host.go(("leaving", "moves to kvm2"))
    host.put_back()
    assert host.look(dry=True) == (("leaving", "moves to kvm2"), before, "leaving")
    assert host.look() == (("leaving", "moves to kvm2"), "leaving", "leaving")


def test_one_that_has_left_since_is_leaving_also_where_the_clock_was_set_back_meanwhile(tmp_path, monkeypatch):
    """Lost: the same, to a clock that was two hours ahead as the database was copied."""
    host, now = Host(tmp_path), time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    host.go(("running", ""))
    host.copy()
    monkeypatch.setattr(time, "time", lambda: now)
    host.go(("leaving", "moves to kvm2"))
    host.put_back()
    assert host.look() == (("leaving", "moves to kvm2"), "leaving", "leaving")


@pytest.mark.parametrize(("since", "state"), [("running", "starting"), ("ending", "ending")])
def test_one_that_was_started_since_it_came_is_none_that_never_was(tmp_path, since, state):
    """Lost: the only root, which is removed with what was never started."""
    host = Host(tmp_path, FROM)
    host.copy()
    host.go(("starting", ""), (since, ""))
    host.put_back()
    assert host.look() == ((state, ""), state, state)


def test_one_that_moved_on_since_it_came_is_leaving_whatever_is_cut_off(tmp_path):
    """Lost: where it is, as the record, which alone knows, is written anew."""
    host = Host(tmp_path, FROM)
    host.copy()
    host.go(("starting", ""), ("running", ""), ("leaving", "moves to kvm3"))
    host.put_back()
    assert host.look(dry=True) == (("leaving", "moves to kvm3"), "arriving", "leaving")
    assert host.look() == (("leaving", "moves to kvm3"), "leaving", "leaving")


def test_a_record_that_knows_no_more_changes_nothing(tmp_path):
    """Lost: a state that each verb turns over."""
    host = Host(tmp_path, FROM)
    assert host.look() == (("arriving", "moves from kvm1"), "arriving", "arriving")
    host.go(("starting", ""), ("running", ""))
    assert host.look()[0] == ("running", "")


@pytest.mark.parametrize(("made", "counts"), [(False, []), (True, ["win"])])
def test_one_that_was_killed_as_it_was_to_come_holds_nothing(tmp_path, made, counts):
    """Lost: a name and memory, for nobody: its record was written, its claim was not. One with a root here counts."""
    with Store(str(tmp_path / "host.db")) as store:
        store.claim(Asked("win", "alice", dict(name="cg1"), "box", KEY, "kvm", arrives=FROM), ROOM, None, [])
        if made:
            store.put("win", container="domain:win")
        record = store.records.read("win")
        store.release("win")
        store.records.write(record)
        assert [claim.instance for claim in store.in_use()] == counts
