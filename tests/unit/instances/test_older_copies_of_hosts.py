# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of host.db put back, and the verbs on what was made since. If these fail, who asks for a container
hears that there is none while it runs.

Tests claims/host/tables.py.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.tables import mark_beside
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import CG1

CLAIM = f"no claim of it is in the database of {THIS_NODE}, which may be older than that (put back from a copy)"
#: Of the size of an image, without GPUs.
SMALL = dict(CG1, local_gb=1, extra_specs={"hypervisor": "s== LXC"})


def put_back(site, copy):
    database = Path(site.database)
    for path in database.parent.glob("host.db*"):
        path.unlink()
    shutil.copy(copy, database)


@pytest.fixture
def unknown(site):
    """ml-8, which runs, asked for since the copy that was put back."""
    site.claim("ml-7", flavor=SMALL)
    copy = backups.make(site.database)
    site.claim(flavor=SMALL)
    assert not site.up().get("failed")
    put_back(site, copy)
    return site


def there(site):
    folder = site.lxcpath / "ml-8"
    return folder.stat().st_ino, (folder / "config").read_bytes(), site.container().running


@pytest.mark.parametrize("verb", ["absent", "stopped", "rebooted", "running", "rebuilt", "extended"])
def test_a_container_that_runs_is_not_said_to_be_none(unknown, verb):
    """Lost: a container, which runs on, although its tenant was told that there is none."""
    before = there(unknown)
    with pytest.raises(Refused) as refused:
        unknown.do(getattr(lifecycle, verb), lease_hours=1.0)
    assert str(refused.value).startswith(f"ml-8: {CLAIM}, and container {unknown.lxcpath}/ml-8 (by the record of ")
    assert "its claim jo's, lease no end) is there: nothing is touched" in str(refused.value)
    assert "put a newer copy of it back" in str(refused.value)
    (found,) = unknown.info(instance="ml-8")["unclaimed"]
    assert (found["instance"], found["name"]) == ("ml-8", "gpu1")
    assert (unknown.info()["unclaimed"], unknown.info(instance="ml-7")["unclaimed"]) == ([found], [])
    assert there(unknown) == before


@pytest.mark.parametrize("record", ["whole", "unreadable", "gone"])
def test_reconcile_offers_no_end_of_what_is_somebodys(unknown, record):
    """Lost: a tenant's container, by the command that reconcile printed: it said that no instance has it."""
    kept = unknown.folder / "state/host.claims/ml-8.json"
    kept.write_text("{") if record == "unreadable" else kept.unlink() if record == "gone" else None
    before = there(unknown)
    for check in (True, False):
        with unknown.host() as host:
            (said,) = reconcile(host, Change(check), 5.0)["others"]
        if record == "gone":
            assert "ml-8 of " in said
            assert "see who made it, and whose root lxc.rootfs.path in its config names" in said
            continue
        assert said == unknown.info(instance="ml-8")["unclaimed"][0]["text"]
        assert ("its claim jo's, lease no end" in said) == (record == "whole")
        assert (f"the record of its claim, {kept}, cannot be read" in said) == (record == "unreadable")
        assert "of no instance" not in said
        assert "destroy" not in said
        assert "rm -r" not in said
    assert there(unknown) == before


def test_no_line_is_printed_that_removes_another_containers_root(unknown):
    """Lost: the root of a running instance, by a printed lxc-destroy of a container that was copied from it by hand."""
    (unknown.folder / "state/host.claims/ml-8.json").unlink()
    (unknown.lxcpath / "ml-8").rename(unknown.lxcpath / "ml-8 old; reboot")  # as mv: its id stays valid
    with unknown.host() as host:
        others = reconcile(host, Change(False), 5.0)["others"]
    (unknown.lxcpath / "ml-8 old; reboot").rename(unknown.lxcpath / "ml-8")
    said = [text for text in others if text.startswith("container ")]
    assert "ml-8 old; reboot" in said[0]
    assert not [text for text in said if "lxc-destroy" in text or "lxc-stop" in text or "rm -r" in text]


def test_reconcile_names_the_copy_that_knows_it(unknown):
    """Lost: a tenant's container, whose record is gone, though a newer copy of the database says whose it is."""
    shutil.rmtree(unknown.folder / "state/host.claims")
    older = backups.copies(unknown.database)[0]
    os.rename(unknown.lxcpath / "ml-8", unknown.folder / "aside")
    unknown.claim(flavor=SMALL)
    knows = backups.make(unknown.database)
    os.rename(unknown.folder / "aside", unknown.lxcpath / "ml-8")
    put_back(unknown, older)
    shutil.rmtree(unknown.folder / "state/host.claims")
    with unknown.host() as host:
        (said,) = reconcile(host, Change(False), 5.0)["others"]
    assert f"the copy {knows} knows ml-8: run on node " in said
    assert "destroy" not in said


def test_the_copy_that_knows_it_is_named(unknown):
    """Lost: the way out: a copy that knows ml-8, among older ones."""
    asked = unknown.info(instance="ml-8")["unclaimed"][0]["text"]
    assert "knows ml-8" not in asked
    os.rename(unknown.lxcpath / "ml-8" / "config", unknown.folder / "aside")
    (unknown.folder / "state/host.claims/ml-8.json").unlink()
    unknown.claim(flavor=SMALL)
    knows = backups.make(unknown.database)
    older = backups.copies(unknown.database)[0]
    os.rename(unknown.folder / "aside", unknown.lxcpath / "ml-8" / "config")
    put_back(unknown, older)
    asked = unknown.info(instance="ml-8")["unclaimed"][0]["text"]
    assert f"the copy {knows} knows ml-8: run on node " in asked
    assert f"touch {mark_beside(unknown.database)} && cp -p {knows} " in asked
    put_back(unknown, knows)
    assert unknown.info(instance="ml-8")["unclaimed"] == []


def test_a_container_of_somebody_else_is_no_instance(claims):
    """Lost: the plain answer, by a container that an operator made by hand and that bears no id of ours."""
    (claims.lxcpath / "box").mkdir(parents=True)
    (claims.lxcpath / "box" / "config").write_text("lxc.uts.name = box\n")
    assert claims.info(instance="box")["unclaimed"] == []
    assert claims.do(lifecycle.absent, "box")["instances"] == []


@pytest.fixture
def recorded(claims):
    """jo's a, which runs, claimed since the copy that was put back; the file system that holds it is not mounted."""
    claims.claim("x", flavor=SMALL)
    copy = backups.make(claims.database)
    claims.claim("a", owner="jo", flavor=SMALL, lease_hours=5)
    made = dict(container=f"{claims.lxcpath}/a#" + "0" * 32, host_key="ssh-ed25519 AAAA", image_hash="1" * 64)
    with claims.host() as host:
        host.store.put("a", state="building")
        host.store.put("a", **made)
        host.store.put("a", state="starting")
        host.store.put("a", state="running")
    claims.newer = backups.make(claims.database)
    put_back(claims, copy)
    return claims


def record_of(site):
    return Path(site.database).with_name("host.claims") / "a.json"


@pytest.mark.parametrize("owner", ["eve", "jo"])
def test_a_name_that_is_somebodys_by_a_record_is_given_to_nobody(recorded, owner):
    """Lost: the only word that a is jo's: its record was written over by who asked for that name."""
    before = record_of(recorded).read_bytes()
    for check in (True, False):
        with pytest.raises(NoneFree) as refused:
            recorded.claim("a", owner=owner, key=OTHER_KEY, flavor=SMALL, check=check)
        assert f"{CLAIM}, and {record_of(recorded)} (by the record of its claim jo's, lease " in str(refused.value)
        assert record_of(recorded).read_bytes() == before
    assert [one["instance"] for one in recorded.info()["instances"]] == ["x"]
    put_back(recorded, recorded.newer)  # as printed
    assert recorded.info(instance="a")["instances"][0]["owner"] == "jo"
    assert recorded.info()["unclaimed"] == []


def test_an_instance_of_which_there_is_a_record_only_is_not_said_to_be_none(recorded):
    """Lost: a container, which is mounted again, although its tenant was told that there is none."""
    for verb in (lifecycle.absent, lifecycle.running, lifecycle.extended):
        with pytest.raises(Refused) as refused:
            recorded.do(verb, "a", lease_hours=1.0)
        assert str(refused.value).startswith(f"a: {CLAIM}, and {record_of(recorded)} (by the record of its claim jo's")
    (found,) = recorded.info(instance="a")["unclaimed"]
    assert (found["instance"], found["name"]) == ("a", "gpu1")
    with recorded.host() as host:
        (said,) = reconcile(host, Change(False), 5.0)["others"]
    assert said == found["text"]
    assert f"the copy {recorded.newer} knows a: run on node " in said
    assert "or, once nobody wants it, end it where it is (the file system that holds it may not be mounted)" in said
    assert recorded.info(instance="b")["unclaimed"] == []


def test_a_record_that_nobody_wants_any_more_is_removed_as_printed(recorded):
    """Lost: a name, for good, to the record of what was ended by hand."""
    assert "and remove that file" in recorded.info(instance="a")["unclaimed"][0]["text"]
    record_of(recorded).unlink()
    assert recorded.info()["unclaimed"] == []
    assert recorded.claim("a", owner="eve", key=OTHER_KEY, flavor=SMALL)["new"] == ["a"]


def test_one_of_several_that_is_somebodys_by_a_record_is_left_out(recorded):
    """Lost: the record, where a request takes as many of its instances as it gets."""
    with recorded.host() as host:
        kept = host.store.kept("a")
        host.store.records.write(replace(kept, instance="b-2", request="b"))
    asked = dict(owner="eve", key=OTHER_KEY, flavor=SMALL, count=2, partial=True)
    assert recorded.claim("b", **asked)["new"] == ["b-1"]
    with recorded.host() as host:
        assert host.store.kept("b-2") == replace(kept, instance="b-2", request="b")


@pytest.mark.parametrize("state", ["claimed", "building", "ending"])
def test_a_record_of_a_claim_that_had_nothing_holds_up_no_name(claims, state):
    """Lost: a name, to a claim of which the database knows nothing and which never had a container, or has none."""
    claims.claim("x", flavor=SMALL)
    copy = backups.make(claims.database)
    claims.claim("a", owner="jo", flavor=SMALL)
    with claims.host() as host:
        host.store.put("a", state=state)
    put_back(claims, copy)
    assert claims.info()["unclaimed"] == []
    assert claims.claim("a", owner="eve", key=OTHER_KEY, flavor=SMALL)["new"] == ["a"]


@pytest.mark.parametrize("runs", [True, False])
def test_a_container_that_was_made_since_the_copy_is_not_made_anew(claimed, runs):
    """Lost: all that is in a container, by asking for it again: the copy is from the moment of its claim."""
    if not runs:
        claimed.do(lifecycle.stopped)
    put_back(claimed, claimed.copy)
    before = there(claimed)
    for verb in (lifecycle.running, lifecycle.absent, lifecycle.rebuilt):
        result = claimed.do(verb, fresh=True)
        assert result["failed"]
        assert (
            f"{claimed.container().thing} has run, and the database of {THIS_NODE}, which may be older" in result["msg"]
        )
        assert there(claimed) == before
    put_back(claimed, claimed.newer)
    assert not claimed.do(lifecycle.absent).get("failed")
    assert not (claimed.lxcpath / "ml-8").exists()


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_a_container_that_ran_by_its_record_is_not_made_anew(claimed, verb):
    """Lost: all that is in a container, as above, where its console's log is gone, and only its record knows of it."""
    claimed.do(lifecycle.stopped)
    Path(claimed.container().folder, "console.log").unlink()
    put_back(claimed, claimed.copy)
    before = there(claimed)
    for _again in range(2):
        result = claimed.do(getattr(lifecycle, verb), timeout=30)
        assert f"{claimed.container().thing} has run, and the database of {THIS_NODE}" in result["msg"]
        assert there(claimed) == before


@pytest.fixture
def claimed(site):
    """ml-8, which runs; `copy`, of the database as it was claimed and nothing made, and `newer`."""
    site.claim(flavor=SMALL)
    site.copy = backups.make(site.database)
    assert not site.up().get("failed")
    site.newer = backups.make(site.database)
    return site
