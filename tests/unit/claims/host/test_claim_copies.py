# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of claims beside a host's database. If these fail, an older copy of it ends leases that were extended
since, or one that was killed in between keeps what nobody has. Whole hosts: instances/test_older_leases.py.

Tests claims/host/claim_records.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import record_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import claim_copies
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.claim_records import ClaimRecords
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

ROOM = dict(memory_mb=4096, vcpus=4, local_gb=40)
FLAVOR = dict(name="cg1", memory_mb=1024, vcpus=1, local_gb=1)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state" / "host.db")


def record(path):
    return Path(path).parent / "host.claims" / "ml-8.json"


def claim(store, hours=1.0, name="ml-8"):
    return store.claim(Asked(name, "jo", FLAVOR, "box", KEY, "lxc", lease_hours=hours), ROOM, None, [])[0]


def put_back(path, copy):
    for name in Path(path).parent.glob("host.db*"):
        name.unlink()
    shutil.copy(copy, path)


def copied(path):
    """The database as it is now, closed by everybody."""
    return shutil.copy(path, Path(path).with_name("copy"))


def without_records(path):
    """The database as the release before left it."""
    shutil.rmtree(record(path).parent)
    with Store(path) as store:
        store._db.write("DELETE FROM events WHERE phase = 'records'")


def test_a_lease_that_was_extended_since_the_copy_lasts(path):
    """Lost: a container, whose lease was extended in the hour before host.db was lost."""
    with Store(path) as store:
        first = claim(store)
    copy = copied(path)
    with Store(path) as store:
        store.put("ml-8", expires=first.expires + 86400, container="/lxc/ml-8#id")
    put_back(path, copy)
    with Store(path) as store:
        with store.transaction(dry=True):
            store.put("ml-8", expires=1.0)
        (found,) = store.claims()
        assert found.expires == store.claim_of("ml-8").expires == first.expires + 86400
        assert store.doubt_of(found) is None
        assert store.other_lease(found) == (first.expires + 86400, first.expires)
        store.put("ml-8", state="building")
        kept = ClaimRecords(str(record(path).parent)).read("ml-8")
        assert (kept.expires, kept.container) == (first.expires + 86400, "/lxc/ml-8#id")
        assert kept.state == "building"
        store.put("ml-8", expires=found.expires)
        assert store.other_lease(found) is None
        store.put("ml-8", expires=None)
    put_back(path, copy)
    with Store(path) as store:
        assert store.claim_of("ml-8").expires is None


def test_a_lease_may_be_made_shorter(path):
    """Lost: the GPUs of a tenant who said that the lease ends sooner."""
    with Store(path) as store:
        first = claim(store)
        assert store.put("ml-8", expires=first.created + 60).expires == first.created + 60
    with Store(path) as store:
        assert store.claim_of("ml-8").expires == first.created + 60


def test_a_record_has_what_the_database_has_and_goes_with_the_claim(path):
    """Lost: whose an instance is; or the files of all that ever were."""
    with Store(path) as store:
        assert claim(store) == store.kept("ml-8")
        assert store.put("ml-8", container="/lxc/ml-8#id", state="running", note="x") == store.kept("ml-8")
        assert (record(path).stat().st_mode & 0o777, record(path).parent.stat().st_mode & 0o777) == (0o600, 0o700)
        claim(store, name="ml-9")
        assert store.records.instances() == ["ml-8", "ml-9"]
        store.release("ml-8")
        assert store.records.instances() == ["ml-9"]
        with store.transaction(dry=True):
            store.release("ml-9")
            claim(store)
        assert store.records.instances() == ["ml-9"]
        with store.transaction():
            claim(store)
            store.release("ml-8")
        assert store.records.instances() == ["ml-9"]


@pytest.mark.parametrize("how", ["put", "word"])
def test_claims_of_an_earlier_release_get_records(path, how):
    """Lost: leases of a host that was set up before; or each of them held, because it has no record yet."""
    with Store(path) as store:
        claim(store)
        claim(store, name="ml-9")
    without_records(path)
    with Store(path) as store:
        assert [store.doubt_of(one) for one in store.claims()] == [None, None]
        store.put("ml-9", state="building") if how == "put" else store.keep_missing()
        assert store.records.instances() == ["ml-8", "ml-9"]
        assert [store.kept(one.instance) for one in store.claims()] == store.claims()
        events = len(store.events())
        store.keep_missing()
        assert len(store.events()) == events
        record(path).unlink()
        store.keep_missing()
        assert not record(path).exists(), "it was lost, and may have been newer"


def test_a_copy_of_before_the_records_does_not_renew_them(path):
    """Lost: a lease, by a copy from before the update that is put back after an extension."""
    with Store(path) as store:
        first = claim(store)
        claim(store, name="ml-9")
    without_records(path)
    copy = copied(path)
    with Store(path) as store:
        store.put("ml-8", expires=first.expires + 86400)
    put_back(path, copy)
    record(path).with_name("ml-9.json").unlink()
    with Store(path) as store:
        store.keep_missing()
        assert "is lost" in store.doubt_of(store.claim_of("ml-9"))[0]
        assert store.claim_of("ml-8").expires == store.kept("ml-8").expires == first.expires + 86400


def lost(path):
    record(path).unlink()


def cut(path):
    os.truncate(record(path), 100)


def wrong(path):
    record(path).write_text(json.dumps(dict(json.loads(record(path).read_text()), expires="soon")))


def without_end(path):
    record(path).write_text(json.dumps(dict(json.loads(record(path).read_text()), expires=10**30)))


def of_a_long_owner(path):
    record(path).write_text(json.dumps(dict(json.loads(record(path).read_text()), owner="x" * 200_000)))


def of_much(path):
    record(path).write_text(json.dumps(dict(json.loads(record(path).read_text()), memory_mb=10**30)))


def pipe(path):
    record(path).unlink()
    os.mkfifo(record(path))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lost, "its claim is lost"),
        *((one, "of a claim cannot be read") for one in (cut, wrong, without_end, of_a_long_owner, of_much, pipe)),
    ],
)
def test_a_lease_whose_record_says_nothing_is_in_doubt_until_it_is_said_anew(path, harm, said):
    """Lost: a container whose lease was longer by a record that is gone; or its GPUs for ever."""
    with Store(path) as store:
        first = claim(store)
        harm(path)
        what, remedy = store.doubt_of(first)
        assert what.startswith(f"{record(path)}: ")
        assert said in what
        assert "hetero.compute.extend_instance -e instance=ml-8 -e hours=HOURS says anew" in remedy
        assert "hetero.compute.terminate_instance -e instance=ml-8 ends it now" in remedy
        assert store.claim_of("ml-8") == first
        store.put("ml-8", state="building")
        assert store.doubt_of(first), "a change of anything else does not say when its lease ends"
        assert store.doubt_of(replace(first, expires=None)) is None
        store.must_be_its_record(first)
        found = store.put("ml-8", expires=first.expires)
        assert (store.doubt_of(found), store.kept("ml-8")) == (None, found)
        harm(path)
        store.release("ml-8")
        assert (store.claims(), store.records.instances()) == ([], [])


def test_a_record_of_a_later_claim_of_that_name_is_neither_believed_nor_written_over(path):
    """Lost: an instance that was asked for since the copy, by the lease of the one before it."""
    with Store(path) as store:
        first = claim(store)
    copy = copied(path)
    with Store(path) as store:
        store.release("ml-8")
        second = claim(store, 9.0)
    put_back(path, copy)
    with Store(path) as store:
        assert store.claims() == [first]
        what, remedy = store.doubt_of(first)
        assert what == f"{record(path)}: that is the record of another claim of that name, of jo"
        assert "put a newer copy of the database back" in remedy
        with pytest.raises(Refused, match="the record of another claim"):
            store.must_be_its_record(first)
        store.put("ml-8", state="building", expires=1.0)
        store.release("ml-8")
        assert store.kept("ml-8") == second
        third = claim(store)
        assert store.kept("ml-8") == third, "nothing of the second is there, or nobody could claim its name"


def test_a_file_of_another_instance_is_no_record(path):
    """Lost: a lease, by a record that a hand copied into its place."""
    with Store(path) as store:
        first = claim(store)
        claim(store, 99.0, "ml-9")
        shutil.copy(record(path).with_name("ml-9.json"), record(path))
        assert "that is a record of ml-9, not of ml-8" in store.doubt_of(first)[0]
        assert store.claim_of("ml-8") == first


# ---- killed


def killed(path, work, when):
    """Do `work` in a process that is killed before it writes or removes a record, after it, or after the commit."""
    child = os.fork()
    if not child:
        try:
            with Store(path) as store:
                if when != "committed":
                    for name in ("write", "remove"):
                        setattr(record_files, name, dies(getattr(record_files, name), when == "recorded"))
                work(store)
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def dies(real, after):
    def do(*given):
        if after:
            real(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    return do


WHEN = ["begun", "recorded", "committed"]


@pytest.mark.parametrize("when", WHEN)
def test_an_extension_that_is_killed_never_ends_a_lease_early(path, when):
    """Lost: a container, by a lease that ends neither as it did nor as its tenant said."""
    with Store(path) as store:
        first = claim(store)
    killed(path, lambda store: store.put("ml-8", expires=first.expires + 60), when)
    with Store(path) as store:
        (found,) = store.claims()
        assert found.expires == first.expires + (0 if when == "begun" else 60)
        assert store.doubt_of(found) is None
    killed(path, lambda store: store.put("ml-8", expires=first.created + 9), when)
    with Store(path) as store:
        (kept,) = store.claims()
        ends = dict(begun=found.expires, recorded=first.expires, committed=first.created + 9)
        assert kept.expires == ends[when]
        assert store.doubt_of(kept) is None, "it ends, by the later of both"


@pytest.mark.parametrize("when", WHEN)
def test_a_claim_or_its_end_that_is_killed_keeps_nothing_for_ever(path, when):
    """Lost: a name, and its GPUs, by a record without a claim; or by a claim whose record is gone."""
    killed(path, claim, when)
    with Store(path) as store:
        assert len(store.claims()) == (when == "committed")
        first = claim(store)
        assert store.kept("ml-8") == first
        assert store.doubt_of(first) is None
        store.put("ml-8", state="ending")
    killed(path, lambda store: store.release("ml-8"), when)
    with Store(path) as store:
        assert len(store.claims()) == (when != "committed")
        if when == "recorded":
            assert "is lost" in store.doubt_of(first)[0], "host reap goes on: its end was begun"
        store.release("ml-8")
        assert (store.claims(), store.records.instances()) == ([], [])
        assert claim(store).created > first.created or time.time() < first.created


def test_a_lease_whose_end_is_not_known_is_told_with_a_way_out(path):
    """Lost: a container that ends by a record that is not its own; or the word that ends it, where it is to end."""
    with Store(path) as store:
        mine = claim(store)
        kept = record(path).read_text()
        lasts = claim(store, hours=None, name="ml-9")
        for name in ("ml-8.json", "ml-9.json"):
            record(path).with_name(name).unlink()
        lost = f"{record(path)}: {claim_copies.LOST}", claim_copies.WORD.format(name="ml-8")
        assert (store.doubt_of(mine), store.doubt_of(lasts)) == (lost, None)
        record(path).write_text("{")
        assert store.doubt_of(mine)[1] == claim_copies.WORD.format(name="ml-8")
        store.must_be_its_record(mine)
        record(path).write_text(json.dumps(dict(json.loads(kept), owner="eve", created=mine.created - 9)))
        anothers = f"{record(path)}: {claim_copies.ANOTHERS.format(owner='eve')}", claim_copies.NEWER
        assert store.doubt_of(mine) == anothers
        with pytest.raises(Refused, match="of another claim of that name, of eve"):
            store.must_be_its_record(mine)
