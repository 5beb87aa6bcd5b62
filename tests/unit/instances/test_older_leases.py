# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of host.db put back, and leases that were extended since. If these fail, the reaper ends a container
that runs, with all that its tenant has in it.

Tests nodes/compute_host/reap.py.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.tests.unit.instances.conftest import CG1
from ansible_collections.hetero.compute.tests.unit.instances.test_lost_host import (
    UNFINISHED,
    go_the_printed_way,
    here,
    lose,
    module,
)

__all__ = ["here"]

#: Of the size of an image, without GPUs.
SMALL = dict(CG1, local_gb=1, extra_specs={"hypervisor": "s== LXC"})
#: Hours: a tenth of a second.
SHORT = 1 / 36000
OVER = "ml-7 of jo: its lease is over since "


@pytest.fixture
def extended(here):
    """ml-7 runs, with a week's work in it; its lease, which is over by the newest copy, was extended by a day since."""
    here.claim("ml-7", flavor=SMALL, lease_hours=SHORT)
    assert not here.up("ml-7").get("failed")
    wait_for_the_end(here)
    here.copy = backups.make(here.database)
    assert not here.do(lifecycle.extended, "ml-7", lease_hours=24.0).get("failed")
    return here


def put_back(site, copy):
    lose(site)
    shutil.copy(copy, site.database)


def reaped(site):
    """What a turn of the reaper says, and whether all of it could be ended."""
    said = []
    with site.host() as host:
        return reap.reap(host, said.append), said


def runs(site):
    return site.container("ml-7").running


def record(site):
    return Path(site.database).with_name("host.claims") / "ml-7.json"


def ml_7(looks):
    return next(one for one in looks["instances"] if one["instance"] == "ml-7")


def test_the_printed_way_ends_no_lease_that_was_extended_since_the_copy(extended, capfd):
    """Lost: a week's work, by typing what the error said."""
    lose(extended)
    with pytest.raises(HeteroError, match="is not there") as error:
        module(extended, "host_reconcile")
    go_the_printed_way(error.value)
    said = module(extended, "host_reconcile")
    assert UNFINISHED in said["warnings"][0]
    (found,) = ml_7(said)["found"]
    assert f"its lease ends otherwise by {record(extended)} (until " in found["found"]
    assert found["done"] == "the later end is in both now"
    assert reaped(extended) == (True, [])
    assert reap.main(["--config", str(extended.config)]) == 0
    assert capfd.readouterr().out == ""
    assert runs(extended)
    seen = ml_7(extended.info())
    assert (seen["lease_seconds"] > 86000, seen["note"]) == (True, "")
    shutil.rmtree(record(extended).parent)
    with extended.host() as host:
        assert host.store.claim_of("ml-7").expires > time.time() + 86000, "the database has it, too"
    assert ml_7(module(extended, "host_reconcile", check=True))["found"] != []


def test_a_copy_that_was_just_put_in_place_ends_none_either(extended, capfd):
    """Lost: the same, where nobody left a mark, and nobody ran reconcile."""
    put_back(extended, extended.copy)
    assert reaped(extended) == (True, [])
    assert reap.main(["--config", str(extended.config)]) == 0
    assert runs(extended)
    seen = ml_7(extended.info())
    assert seen["lease_seconds"] > 86000
    assert "the record of its claim has another lease: until " in seen["note"]
    assert "the database is older than it: run ansible-playbook hetero.compute.reconcile" in seen["note"]
    (found,) = ml_7(module(extended, "host_reconcile", check=True))["found"]
    assert found["done"] == "the later end would be written down in both"
    assert ml_7(extended.info())["note"] == seen["note"]
    assert module(extended, "host_reconcile")["changed"] is True
    assert ml_7(extended.info())["note"] == ""
    assert module(extended, "host_reconcile")["changed"] is False


def test_an_end_that_nobody_knows_is_said_and_ends_nothing(extended, capfd):
    """Lost: a week's work, where the record is lost as well; or its GPUs, for ever, without a word."""
    put_back(extended, extended.copy)
    record(extended).unlink()
    for _turn in range(2):
        ended, (said,) = reaped(extended)
        assert not ended
        assert said.startswith(OVER)
        assert f"{record(extended)}: the record of its claim is lost: the database may be older" in said
        assert "extend_instance -e instance=ml-7 -e hours=HOURS says anew when it ends" in said
    assert reap.main(["--config", str(extended.config)]) == 1
    assert OVER in capfd.readouterr().out
    assert runs(extended)
    assert "the record of its claim is lost" in ml_7(extended.info())["note"]
    (found,) = ml_7(module(extended, "host_reconcile"))["found"]
    assert ("the record of its claim is lost" in found["found"], found["done"]) == (True, None)
    with extended.host() as host:
        events = [event for event in host.store.events(instance="ml-7") if "is lost" in event.text]
        assert events == [], "no turn of the reaper fills them"
    assert not extended.do(lifecycle.extended, "ml-7", lease_hours=SHORT).get("failed")
    wait_for_the_end(extended)
    ended, (said,) = reaped(extended)
    assert (ended, said.endswith("; ended, its devices are free")) == (True, True)
    assert not (extended.lxcpath / "ml-7").exists()
    assert not record(extended).exists()
    assert extended.container("ml-8").running


def wait_for_the_end(site):
    """Until the lease of ml-7 is over."""
    with site.host() as host:
        left = host.store.claim_of("ml-7").expires - time.time()
    if left >= 0:
        time.sleep(left + 0.01)


def test_its_tenant_ends_it_whatever_its_record_says(extended):
    """Lost: the devices of an instance that its tenant gives back, by a record that is lost."""
    put_back(extended, extended.copy)
    record(extended).unlink()
    assert not extended.do(lifecycle.absent, "ml-7").get("failed")
    assert not (extended.lxcpath / "ml-7").exists()


def test_an_end_that_was_cut_off_after_its_record_goes_on(claims):
    """Lost: the GPUs of a lease that is over, for ever, where the reaper was killed before its last word."""
    claims.claim("ml-7", flavor=SMALL, lease_hours=SHORT)
    wait_for_the_end(claims)
    record(claims).unlink()
    ended, (said,) = reaped(claims)
    assert (ended, said.startswith(OVER)) == (False, True)
    with claims.host() as host:
        host.store.put("ml-7", state="ending")
    ended, (said,) = reaped(claims)
    assert (ended, said.endswith("; ended, its devices are free")) == (True, True)
    assert claims.nothing_is_left()


def test_a_host_that_was_set_up_before_goes_on(claims, capfd):
    """Lost: the ends of all leases of a host after its update; or records that nobody writes before the next change."""
    claims.claim("ml-7", flavor=SMALL, lease_hours=SHORT)
    claims.claim("ml-9", flavor=SMALL, lease_hours=9.0)
    folder = record(claims).parent
    shutil.rmtree(folder)
    with claims.host() as host:
        host.store._db.write("DELETE FROM events WHERE phase = 'records'")
    wait_for_the_end(claims)
    ended, (said,) = reaped(claims)
    assert (ended, said.endswith("; ended, its devices are free")) == (True, True)
    assert [path.name for path in folder.iterdir()] == ["ml-9.json"]


def test_the_first_turn_of_the_reaper_writes_the_records(here):
    """Lost: an extension in the first hours after an update, where nothing else changed meanwhile."""
    folder = record(here).parent
    shutil.rmtree(folder)
    with here.host() as host:
        host.store._db.write("DELETE FROM events WHERE phase = 'records'")
    assert reap.main(["--config", str(here.config)]) == 0
    assert [path.name for path in folder.iterdir()] == ["ml-8.json"]
