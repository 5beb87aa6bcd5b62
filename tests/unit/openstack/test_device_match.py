# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which devices a rule of Nova matches. If these fail, this collection says that a card is given to guests which Nova
keeps, or the other way round. parity/ compares with Nova itself.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack.device_match import (
    Address,
    fields,
    names_pf,
    pools,
    rule_for,
)

CARD = dict(address="0000:85:00.0", vendor_id="10DE", product_id="11bf", type="type-PCI", numa_node=0, free=True)


def rule(address="", vendor="10de", product="*", interface=None, remote=False, **tags):
    where = Address.of(address, "device_spec")
    return SimpleNamespace(
        vendor_id=vendor, product_id=product, address=where, interface=interface, remote=remote, tags=tags
    )


@pytest.mark.parametrize(
    ("said", "place", "matches"),
    [
        ("", "0000:85:00.0", True),
        ("*:85:00.*", "0001:85:00.7", True),
        ("*:85:00.*", "0000:84:00.0", False),
        (":85:00.", "0000:85:00.3", True),
        ("85:00.1", "0000:85:00.1", True),
        ("85:0.1", "0000:85:00.1", True),
        ("0000:85:00.0", "0001:85:00.0", False),
        ({"bus": "8[45]"}, "0000:84:00.0", True),
        ({"bus": "8[45]"}, "0000:86:00.0", False),
    ],
)
def test_an_address_matches_as_nova_reads_it(said, place, matches):
    """Lost: the card that an operator's line means."""
    assert Address.of(said, "device_spec").matches(fields(place)) is matches


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("1:2:3:4.5", "has more than three colons"),
        ("0000:100:00.0", "bus '100' of address .* is not 0 to ff"),
        ("0000:85:20.0", "slot '20' of address .* is not 0 to 1f"),
        ("0000:85:00.8", "function '8' of address .* is not 0 to 7"),
        ("0000:xy:00.0", "bus 'xy'"),
        ({"bus": "("}, "is no regular expression"),
        ({"bus": 7}, "is no regular expression"),
        (7, "address 7"),
    ],
)
def test_an_address_that_nova_refuses_is_named(said, words):
    """Lost: the line for which nova-compute does not start."""
    with pytest.raises(BadInput, match=words):
        Address.of(said, "device_spec")


def test_a_device_that_nova_cannot_follow_matches_nothing():
    """Lost: a card in a domain of five digits, which Nova passes over."""
    assert fields("10000:85:00.0") is None
    assert rule_for(dict(CARD, address="10000:85:00.0"), [rule()], []) is None
    with pytest.raises(BadInput, match="is no address of a PCI device"):
        fields("85:00.0")


def test_the_first_rule_that_matches_counts():
    """Lost: the tags of the pool, by which a flavor asks for it."""
    first, second = rule(vendor="8086"), rule(product="11bf", name="gpu")
    assert rule_for(CARD, [first, second, rule()], [CARD]) is second
    assert rule_for(CARD, [rule(product="1234")], [CARD]) is None
    assert rule_for(CARD, [rule(interface="eth0")], [CARD]) is None
    assert rule_for(dict(CARD, parent_interface="eth0"), [rule(interface="eth0")], [CARD]) is not None
    assert rule_for(CARD, [rule(remote=True)], [CARD]) is None
    assert rule_for(dict(CARD, serial="S1"), [rule(remote=True)], [CARD]) is not None


def test_a_rule_of_a_physical_function_has_its_virtual_ones():
    """Lost: the ports of a card, which a line for the card means too; and only where it names one card."""
    card = dict(CARD, type="type-PF")
    port = dict(CARD, address="0000:85:10.1", type="type-VF", parent=CARD["address"])
    assert names_pf(rule("0000:85:00.0"), [card, port])
    assert not names_pf(rule("*:85:00.0"), [card])
    assert not names_pf(rule("0000:85:00.0"), [dict(card, type="type-PCI")])
    assert rule_for(port, [rule("0000:85:00.0")], [card, port]) is not None
    assert rule_for(port, [rule("*:85:00.0")], [card, port]) is None


def test_what_is_free_by_pools():
    """Lost: how many cards the scheduler thinks there are."""
    cards = [CARD, dict(CARD, address="0000:86:00.0"), dict(CARD, address="0000:87:00.0", free=False)]
    found = pools(cards, [rule(tag="a", traits="HW_X")])
    assert [(pool["address"], pool["count"], pool["tag"]) for pool in found] == [
        ("0000:85:00.0", 1, "a"),
        ("0000:86:00.0", 1, "a"),
    ]
    assert "traits" not in found[0], "Placement alone uses them"
    assert found[0]["vendor_id"] == "10de"
    assert "remote_managed" not in found[0]


def test_a_card_and_its_functions_are_not_both_given():
    """Lost: a port that somebody has, given away with its card; or a card with its ports in use."""
    card = dict(CARD, type="type-PF")
    ports = [
        dict(CARD, address=f"0000:85:10.{number}", type="type-VF", parent=CARD["address"], free=number != 0)
        for number in range(3)
    ]
    [pool] = pools([card, *ports], [rule()])
    assert (pool["dev_type"], pool["count"], pool["remote_managed"]) == ("type-VF", 2, "false")
    assert pools([dict(card, free=False), *(dict(port, free=True) for port in ports)], [rule()]) == []
