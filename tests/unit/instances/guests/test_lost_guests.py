# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As tests/unit/instances/test_lost_host.py, on a host of guests: their cards, names and addresses."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.modules import host_reconcile
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, NETWORK
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

LOST = "is not there, and instances were made on node "
SMALL = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


def lose(site):
    for path in (site.folder / "var/lib/hetero").glob("host.db*"):
        path.unlink()


def reconcile(site, check=False):
    return host_reconcile.work(dict(config=str(site.config), timeout=30), check)


@pytest.fixture
def lost(site, monkeypatch):
    """ml-8 has a card; the database is gone, and there is no copy of it."""
    monkeypatch.setattr(host_reconcile, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    assert site.provision("ml-8")["new"] == ["ml-8"]
    assert CARD in site.table()
    lose(site)
    return site


def test_nothing_is_claimed_without_it(lost):
    """Lost: ml-8's card and address, by who asks next."""
    with pytest.raises(HeteroError, match=LOST) as error:
        lost.provision("ml-9")
    assert f"guest {lost.folder / 'guests-files/ml-8'}" in str(error.value)
    assert not (lost.folder / "var/lib/hetero/host.db").exists()


def killed(*_given, **_more):
    """A signal may be ignored where the tests run."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("runs", [True, False])
def test_an_end_in_between_leaves_it_lost(lost, monkeypatch, runs):
    """Lost: the card of a guest that is down, where reconcile was killed before it had written that down."""
    if not runs:
        lost.virt.domain("ml-8").stop()
    with monkeypatch.context() as patch:
        patch.setattr(reconciliation, "audit", killed)
        with pytest.raises(KeyboardInterrupt):
            reconcile(lost)
    with pytest.raises(HeteroError, match="not all that containers and guests have is written down in it again"):
        lost.provision("ml-9")
    reconcile(lost)
    assert lost.table() == {CARD: "domain:ml-8"}
    with pytest.raises(NoneFree, match="allocated to ml-8"):
        lost.provision("ml-9")


def test_a_card_with_which_another_domain_would_start_is_given_to_nobody(lost):
    """Lost: the card of a guest whose folder is damaged: nothing but libvirt knows that it is this guest's."""
    lost.virt.domain("ml-8").stop()
    (lost.folder / "guests-files/ml-8/domain.xml").unlink()
    records = lost.folder / "var/lib/hetero/host.claims"
    with pytest.raises(HeteroError, match=f"instances were made on .*record of a claim {records}/ml-8.json"):
        lost.provision("ml-9")
    shutil.rmtree(records)
    with pytest.raises(NoneFree, match="domain ml-8 would start with it"):
        lost.provision("ml-9")


@pytest.mark.parametrize("runs", [True, False])
def test_nobody_gets_the_card_of_a_guest(lost, runs):
    """Lost: the card of a guest that is down, which nothing in the kernel holds."""
    if not runs:
        lost.virt.domain("ml-8").stop()
    dry = reconcile(lost, check=True)
    assert LOST in dry["warnings"][0]
    assert not Path(lost.folder / "var/lib/hetero/host.db").exists()
    result = reconcile(lost)
    assert LOST in result["warnings"][0]
    for said in (dry, result):
        assert [(one["domain"], one["address"], one["done"]) for one in said["domains"]] == [
            ("ml-8", CARD, "written down")
        ]
    assert lost.table() == {CARD: "domain:ml-8"}
    with pytest.raises(NoneFree, match="allocated to ml-8"):
        lost.provision("ml-9")
    with pytest.raises(NoneFree, match=r"no claim of it is in the database of .*by the record of its claim"):
        lost.provision("ml-8")
    lost.provision("ml-7", flavor=SMALL)
    assert [one["ip"] for one in lost.info()["instances"]] == [f"{NETWORK}.11"]
    again = reconcile(lost)
    assert ("warnings" in again, again["domains"][0]["done"]) == (False, None)
    assert lost.table() == {CARD: "domain:ml-8"}
