# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes of an export have one BMC, one by IPMI and one by Redfish (a server that was enrolled twice, or a stale
address). The set-up calls that a defect. If this fails, move_in ends with "report it" and writes nothing, for all
boards, and names no board of the site: what is wrong of two boards is to be a question for these two.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions

PROPERTIES = {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0}


def node(number, name, driver, info):
    port = {"Address": f"02:00:00:00:02:0{number}", "Node UUID": f"u{number}", "PXE boot enabled": True}
    there = {"UUID": f"u{number}", "Name": name, "Driver": driver, "Driver Info": info, "Properties": PROPERTIES}
    return [there, port]


def test_it_is_a_question_of_two_boards(tmp_path):
    """Lost: the whole move, of a site with one slip in an export of hundreds."""
    nodes = [
        *node(1, "jackie", "ipmi", {"ipmi_address": "10.0.100.20", "ipmi_username": "admin"}),
        *node(
            2,
            "carol",
            "redfish",
            {
                "redfish_address": "https://10.0.100.20",
                "redfish_username": "a",
                "redfish_system_id": "/redfish/v1/Systems/2",
            },
        ),
        *node(3, "bob", "ipmi", {"ipmi_address": "10.0.100.23", "ipmi_username": "admin"}),
    ]
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    boards = {name: {"ip": f"10.0.2.{number}"} for number, name in enumerate(("jackie", "carol", "bob"), 2)}
    try:
        result = moved(tmp_path / "site", "ironic", tmp_path / "nodes.json", answers={"proxy": PROXY, "boards": boards})
    except HeteroError as error:
        pytest.fail(f"{error}")
    assert {about for about, key in questions(result) if key in ("outlet", "pdu")} == {"jackie", "carol"}
