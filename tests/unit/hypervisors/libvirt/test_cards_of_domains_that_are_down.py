# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card with which a domain that is down would start, and which the table gives to nobody: it is older, or the domain
was renamed and reconcile, as is printed, has freed what the former name had. As no container and no instance's guest
gets it, module libvirt_hostdev gives it to no other domain. Lost otherwise: the card of the first, which does not start
any more while the other runs, although its card was given to it by this module.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import domains
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD

TWO = "33333333-3333-3333-3333-333333333333"


def renamed(virt):
    """As virsh domrename and playbook reconcile do."""
    folder = Path(virt.paths.domains)
    text = (folder / "win.xml").read_text().replace("<name>win</name>", "<name>win2</name>")
    (folder / "win2.xml").write_text(text)
    (folder / "win.xml").unlink()
    with virt.store() as store:
        domains.audit(SimpleNamespace(store=store, pci=virt.paths), Change())


def older(virt):
    with virt.store() as store, store.transaction():
        for row in store.allocations():
            store.free(row)


@pytest.mark.parametrize("change", [renamed, older])
def test_no_other_domain_gets_it(virt, change):
    virt.attach(virt.define("win"), CARD)
    change(virt)
    assert virt.table() == {}
    two, name = virt.define("two", uuid=TWO), "win" if change is older else "win2"
    said = f"domain {name} would start with it (module hetero.compute.libvirt_hostdev, state detached, takes it away)"
    with pytest.raises(Refused, match=re.escape(said)):
        virt.attach(two, CARD)
    virt.detach(virt.domain(name), CARD)
    assert virt.attach(two, CARD)["changed"]


def test_one_that_both_have_by_hand_is_lent_from_one_to_the_other(virt):
    """As operators do who have one card for several domains, of which one runs at a time."""
    win, two = virt.define("win"), virt.define("two", uuid=TWO)
    two.start()
    for domain in (win, two):
        domain.attach(hostdev.xml(CARD), live=False)
    assert virt.attach(two, CARD)["devices"][0]["live"]
