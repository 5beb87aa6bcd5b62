# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boards an outlet fed last, found without comparing each with each. If these fail, a rack takes minutes; or
another tenant's board is not found, and loses its power.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.recorded_feeds import RecordedFeeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

#: One device of two names, one by another port, a group of machines whose outlets are addresses, two of its machines as
#: PDUs of their own, and two units behind one address.
PDUS = {
    "pdu-a": {"host": "10.0.9.1"},
    "pdu-b": {"host": "10.0.9.1", "port": 22},
    "pdu-c": {"host": "10.0.9.1", "port": 2200},
    "bmcs": {"driver": "fence", "agent": "fence_ipmilan", "agent_options": {"port_as_ip": 1}},
    "bmc-1": {"driver": "fence", "agent": "fence_ipmilan", "host": "10.0.9.21"},
    "bmc-2": {"host": "10.0.9.22"},
    "unit-1": {"driver": "fence", "agent": "fence_apc", "host": "10.0.9.3", "agent_options": {"switch": "1"}},
    "unit-2": {"driver": "fence", "agent": "fence_apc", "host": "10.0.9.3", "agent_options": {"switch": "2"}},
}
OUTLETS = ("1", "01", "2", "10.0.9.21", "::ffff:10.0.9.22")
#: Outlets as they were noted: at the present address, at none, at that of another PDU, and under a name that is gone.
NOTED = [
    Fed(name, outlet, at)
    for name, outlet in itertools.product([*PDUS, "gone"], OUTLETS)
    for at in dict.fromkeys([None, pdu_names.address(PDUS.get(name, {})), "10.0.9.1", pdu_places.EACH])
]


def kept_of(feds):
    return {number: SimpleNamespace(claim=SimpleNamespace(), fed=fed, anew=False) for number, fed in enumerate(feds)}


@pytest.fixture
def feeds():
    """A function: what the records of a node's claims say of outlets, with these noted."""

    def make(feds):
        kept = kept_of(feds)
        store = SimpleNamespace(lost=list, kept_boards=lambda: list(kept), kept=kept.get)
        return RecordedFeeds(SimpleNamespace(store=store, config=ProxyConfig(pdus=PDUS)))

    return make


@pytest.mark.parametrize("pdu", [*PDUS, "gone"])
def test_those_are_found_that_comparing_each_with_each_finds(feeds, pdu):
    """Lost: the power of a board whose outlet is noted in another spelling, or under another name of its PDU."""
    known = feeds(NOTED)
    for outlet in OUTLETS:
        expected = [
            number for number, fed in enumerate(NOTED) if pdu_names.may_be_at(PDUS, fed, pdu, outlet) and number != 3
        ]
        assert list(known.holders(SimpleNamespace(id=3), pdu, outlet)) == expected


def test_what_is_noted_anew_is_found_there_alone(feeds):
    """Lost: the outlet of a board that was plugged elsewhere; or what fed it before stays out of use."""
    known = feeds([Fed("pdu-a", "1"), Fed("pdu-a", "2")])
    known.proxy.store.kept = kept_of([Fed("pdu-a", "3"), Fed("pdu-a", "2")]).get
    known._read([0])
    other = SimpleNamespace(id=9)
    assert [list(known.holders(other, "pdu-a", outlet)) for outlet in ("1", "2", "3")] == [[], [1], [0]]


def test_a_rack_is_not_compared_each_with_each(feeds, monkeypatch):
    """Lost: a quarter of an hour of a request for a thousand boards."""
    asked, may_be_at = [], pdu_names.may_be_at
    monkeypatch.setattr(pdu_names, "may_be_at", lambda *given: asked.append(given) or may_be_at(*given))
    known = feeds([Fed("pdu-a", str(number), "10.0.9.1") for number in range(300)])
    for number in range(300):
        assert known.holders(SimpleNamespace(id=number), "pdu-b", str(number)) == {}
        assert list(known.holders(SimpleNamespace(id=999), "pdu-b", str(number))) == [number]
    assert len(asked) == 300
