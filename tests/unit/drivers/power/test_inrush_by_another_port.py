# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU of two names, by telnet and by its web port, keeps one pace. If this fails, the breaker of a rack trips, and
with it all that runs there.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.pdu_places import place
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_inrush_of_two_names import orders, session

__all__ = ["orders", "session"]


@pytest.mark.parametrize("port", [161, 80, 8080])
def test_two_ports_keep_one_pace(session, orders, port):
    """One session after the other, each with one outlet. Control: a port that each PDU has."""
    pdus = {"pdu-i": dict(host="10.0.2.100"), "pdu-j": dict(host="10.0.2.100", port=port)}
    assert pdu_names.may_be_same(pdu_names.address(pdus["pdu-i"]), pdus["pdu-j"])
    for name, outlet in zip(pdus, "12"):
        session(name, {outlet: "on"}, **pdus[name])
    assert orders[1] - orders[0] >= 0.99, orders


def test_units_behind_one_address_keep_a_pace_each():
    """Lost: time, where each of them has a breaker of its own."""
    one, other = (place({"host": "10.0.2.100", "agent_options": {"switch": unit}}).keys for unit in (1, 2))
    assert not set(one) & set(other)
