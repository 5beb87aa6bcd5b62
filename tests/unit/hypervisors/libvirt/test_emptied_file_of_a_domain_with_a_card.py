# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A domain that has a card by the table, and whose file a power cut left empty: libvirt has no such domain any more. If
this fails, the card is kept from everybody, and what reconcile prints (libvirt_hostdev, state detached, frees it) is
refused, for there is no such domain; that the file is empty nobody says.

Tests compute_host/domains.py.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import domains
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD


def audited(virt):
    with virt.store() as store:
        (found,) = domains.audit(SimpleNamespace(store=store, pci=virt.paths), Change())
    return found


def test_it_is_said_and_what_is_said_frees_the_card(virt):
    virt.attach(virt.define("win"), CARD)
    file = Path(virt.paths.domains) / "win.xml"
    file.write_text("")
    found = audited(virt)
    assert f"a domain that libvirt has no more, for {file} is empty" in found["found"]
    assert (found["done"], virt.table()) == (None, {CARD: "domain:win"})
    file.unlink()
    assert audited(virt)["done"] == "freed"
    assert virt.table() == {}


def test_it_keeps_the_card_where_it_is_defined_again(virt):
    virt.attach(virt.define("win"), CARD)
    file = Path(virt.paths.domains) / "win.xml"
    text = file.read_text()
    file.write_text("")
    audited(virt)
    file.write_text(text)
    assert audited(virt)["done"] is None
    assert virt.table() == {CARD: "domain:win"}
