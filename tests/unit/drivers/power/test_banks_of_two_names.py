# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One PDU has two names in the inventory (by telnet and by SNMP), both with inrush: 1, and its banks are written at one
of them only, or in other words. If these fail, two outlets of one bank are switched on at once, and its breaker trips:
all boards of that bank go dark. pdu_places.BESIDES has `banks` among what may differ between two names.
"""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.inrush import Inrush

FIRST = {"driver": "apc", "host": "10.0.2.100", "inrush": 1, "banks": ["1-8", "9-16"]}


@pytest.mark.parametrize(
    "banks",
    [["1-8", "9-16"], None, ["1,2,3,4,5,6,7,8", "9-16"], ["1 - 8", "9 - 16"]],
    ids=["control: the same", "at one name only", "as a list", "with blanks"],
)
def test_two_outlets_of_one_bank_keep_its_pace(tmp_path, banks):
    """Lost: the power of a bank."""
    second = {**FIRST, "driver": "snmp", "banks": banks}
    at = []

    def switch(outlets):
        at.append(time.monotonic())
        return {outlet: Answer(True, "done") for outlet in outlets}

    for name, settings, outlet in (("pdu-a", FIRST, "1"), ("pdu-a-snmp", second, "2")):
        Inrush(str(tmp_path), name, settings, lambda text: None).switch_on([outlet], switch, Deadline(60))
    assert at[1] - at[0] >= 0.9, at[1] - at[0]
