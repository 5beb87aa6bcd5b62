# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One BMC has two names, one by IPMI (its outlet is 1) and one by Redfish (System.Embedded.1), and two boards are wired
to it: a host copied from the line above, or an entry that is left from the other driver. If these fail, set-up says
nothing, and neither a start nor pdu_mgr refuses to cut by one name the machine that somebody has by the other.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.written import _defects
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


@pytest.mark.parametrize("first", [IPMI, FENCE], ids=["ipmi", "fence_ipmilan"])
def test_an_outlet_that_may_be_somebodys_counts_as_his(first):
    """What start, claim and pdu_mgr go by: jackie's record says bmc-a outlet 1."""
    fed = Fed("bmc-a", "1", pdu_names.address(first))
    pdus = {"bmc-a": first, "bmc-b": REDFISH}
    assert pdu_names.may_be_same(fed.address, REDFISH), "the device is known to be one"
    assert pdu_names.may_be_at(pdus, fed, "bmc-b", "System.Embedded.1")
