# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One BMC has two names, one by IPMI (its outlet is 1) and one by Redfish (System.Embedded.1), and two boards are wired
to it: a host copied from the line above, or an entry that is left from the other driver. If these fail, set-up says
nothing, and what is done with one board cuts the other's tenant.

Tests moving/setup_files.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.setup_files import _defects
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file

ROW = '{id} 10.0.2.{id}1 02:00:00:00:00:0{id} 1 1 0 0 0 none 1 {{"arch": "x86_64"}}'
IPMI, REDFISH = {"driver": "ipmi", "host": "10.0.100.20"}, {"driver": "redfish", "host": "10.0.100.20"}


@pytest.mark.parametrize(
    ("second", "outlet"), [(IPMI, "1"), (REDFISH, "System.Embedded.1")], ids=["control: both by IPMI", "IPMI, Redfish"]
)
def test_one_machine_is_no_two_boards(second, outlet):
    """Lost: the power of whoever has the other board."""
    lines = boards_file.parse("\n".join(ROW.format(id=number) for number in (1, 2)))
    wires = {1: {"pdu": "bmc-a", "outlet": "1"}, 2: {"pdu": "bmc-b", "outlet": outlet}}
    found = _defects(wires, {"bmc-a": IPMI, "bmc-b": second}, lines)
    assert found, "nothing is said"


FENCE = {"driver": "fence", "agent": "fence_ipmilan", "host": "10.0.100.20"}
GROUP = {"driver": "fence", "agent": "fence_ipmilan", "agent_options": {"port_as_ip": 1}}
CHASSIS = {"driver": "redfish", "host": "10.0.100.20"}


@pytest.mark.parametrize(
    ("first", "second", "outlets", "is_wrong"),
    [
        (FENCE, REDFISH, ("1", "Self"), True),
        (CHASSIS, REDFISH, ("Blade-1", "Blade-2"), False),
        (GROUP, dict(GROUP), ("10.0.100.20", "10.0.100.21"), False),
        (IPMI, dict(REDFISH, host="10.0.100.21"), ("1", "Self"), False),
    ],
    ids=["fence_ipmilan", "a chassis of two names", "outlets that are addresses", "two BMCs"],
)
def test_which_names_have_one_machine(first, second, outlets, is_wrong):
    """Lost: a wiring that is right, to a set-up that refuses it."""
    lines = boards_file.parse("\n".join(ROW.format(id=number) for number in (1, 2)))
    wires = {1: {"pdu": "bmc-a", "outlet": outlets[0]}, 2: {"pdu": "bmc-b", "outlet": outlets[1]}}
    assert bool(_defects(wires, {"bmc-a": first, "bmc-b": second}, lines)) == is_wrong
