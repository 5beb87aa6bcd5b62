# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of state.db put back, as the errors say, and the verbs before reconcile. If these fail, who asks for an
instance hears that there is none while it runs, or reads of an owner and a lease that were.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_lost_records import damage
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, is_refused


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


def note(site, board=0):
    """What status shows of a board."""
    return site.module("board_info")["boards"][board]["note"]


# ---- what status shows


def test_status_says_that_a_lease_is_another_by_its_record(jackie):
    """Lost: whoever reads that the lease is about to end, and copies their data away from an instance that stays."""
    jackie.lease(1)
    copy = backups.make(jackie.params["state_db"])
    jackie.lease(48)
    put_back(jackie, copy)
    said = note(jackie)
    assert said.startswith("the record of its claim has another lease: until ")
    assert said.endswith("; the database is older than it: run the playbook reconcile")
    reconcile(jackie)
    assert note(jackie) == ""


def test_status_says_that_a_board_is_anothers_by_its_record(site):
    """Lost: whoever asks the owner that was: status named nobody else."""
    assert not any(result.get("failed") for result in site.provision("alice"))
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in [*site.terminate("alice"), *site.provision("bob")])
    put_back(site, copy)
    (board, _other) = site.module("board_info")["boards"]
    assert board["instance"] == "alice"
    assert board["note"] == (
        "is bob's of jackie by the record of its claim; the database is older than it: run the playbook reconcile"
    )
    reconcile(site)
    assert note(site) == ""


def test_status_says_nothing_of_a_record_that_is_older(jackie):
    """Lost: trust in the notes of status: a record that an ended claim left says nothing of who has the board."""
    text = record(jackie).read_text()
    assert not any(result.get("failed") for result in [*jackie.terminate(), *jackie.provision("bob")])
    record(jackie).write_text(text)
    assert note(jackie) == ""


# ---- what needs no outlet


@pytest.mark.parametrize("mine", ["lost", "written anew"])
def test_a_reboot_by_ssh_needs_no_outlet(tenants, mine):
    """Lost: the reboot of a healthy instance, where nobody knows what feeds it and another one."""
    for board in (0, 1):
        tenants.wire(board, fake=dict(tftp=0.0, nfs=0.0, running=0.0, soft="boots"))
    damage(tenants, 0, 1, how="lost")
    if mine == "written anew":
        reconcile(tenants, adopt=["jackie"])
        damage(tenants, 1, how="lost")
    boots = (tenants.run_folder / "fake-boots" / "board0").read_text()
    result = boot(tenants, "rebooted", how="soft", soft_timeout=5)
    assert not result.get("failed"), result
    assert (tenants.run_folder / "fake-boots" / "board0").read_text() != boots
    assert tenants.outlets() == {"1": "on", "2": "on"}
    is_refused(boot(tenants, "rebooted", how="hard"), "may feed carol on board1")


def test_a_boot_by_ssh_that_stalls_cuts_no_unknown_outlet(tenants):
    """Lost: Carol's power, by a reboot of Jackie's instance that was told by ssh and did not come up."""
    damage(tenants, 0, 1, how="lost")
    tenants.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, soft="boots", stall="running"))
    result = boot(tenants, "rebooted", how="soft", soft_timeout=5)
    assert result.get("failed")
    assert tenants.outlets() == {"1": "on", "2": "on"}
