# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who loses a card to another is told that, and not to move the host's database aside: nothing is wrong in it.

Tests compute_host/guest_claims.py.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import attachment, hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, DOMAIN


def said_of(site):
    try:
        return str(site.virt.attach(site.virt.domain("x"), CARD))
    except HeteroError as error:
        return str(error)


def test_an_instance_that_is_claimed_between_the_look_and_the_writing_down(site, monkeypatch):
    """Lost: host.db with all claims of the host, moved aside as printed, to a lost race for a card."""
    site.virt.define("x")
    real = attachment._refuse

    def then_claimed(*args):
        real(*args)
        with site.host() as host:
            present(host, site.request("b"), Change(False))

    monkeypatch.setattr(attachment, "_refuse", then_claimed)
    assert f"{CARD} is allocated to b: take it from the domain (state: detached), or free it" in said_of(site)


def test_a_domain_that_has_an_instances_card_by_hand(site):
    """Lost: the same, each time the module looks: an operator has put the card of b into x (virsh edit)."""
    site.virt.define("x")
    with site.host() as host:
        present(host, site.request("b"), Change(False))
    text = DOMAIN.format(name="x", uuid="11111111-1111-1111-1111-111111111111")
    site.virt.domain("x").libvirt.define(text.replace("<devices/>", f"<devices>{hostdev.xml(CARD)}</devices>"))
    assert f"{CARD} is allocated to b: take it from the domain (state: detached), or free it" in said_of(site)
