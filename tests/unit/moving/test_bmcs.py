# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs that a site's source tells of. If these fail, a server's power is switched by a guess, or somebody's machine is
taken for a free board.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving import bmcs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.source_site import Board, Site


def made(at="10.0.9.1"):
    site, board = Site(), Board("node1", "nodes.json, node1")
    return board, bmcs.bmc(site, board, at, "admin"), site


def test_a_board_is_fed_by_a_bmc_of_its_own():
    """Lost: whose power is switched; and that the source has a password, for which a person is asked."""
    board, pdu, site = made("https://10.0.9.1:8443/redfish/v1")
    assert board.said["pdu"] == pdu.name == "bmc-node1"
    site.boards.append(board)
    assert site.used() == ["bmc-node1"]
    assert (pdu.said["host"], pdu.said["port"], pdu.said["username"], pdu.login) == ("10.0.9.1", 8443, "admin", True)


def test_a_bmc_by_ipmi_has_one_machine():
    """Lost: how it is asked."""
    board, pdu, _site = made()
    bmcs.by_ipmi(pdu, board, 17, older=False)
    assert (board.said["outlet"], pdu.said["driver"], pdu.said["cipher_suite"]) == ("1", "ipmi", 17)
    board, pdu, _site = made()
    bmcs.by_ipmi(pdu, board, 17, older=True)
    assert (board.said["outlet"], pdu.said["driver"], pdu.said["agent"]) == ("1", "fence", "fence_ipmilan")
    assert "cipher_suite" not in pdu.said, "IPMI 1.5 has none"


@pytest.mark.parametrize("system", ["Sys-1", "/redfish/v1/Systems/Sys-1", "/redfish/v1/Systems/Sys-1/"])
def test_a_system_of_redfish_is_named(system):
    """Lost: which of a chassis's machines."""
    board, pdu, _site = made()
    bmcs.by_redfish(pdu, board, "https://10.0.9.1", system, "node_id")
    assert (board.said["outlet"], pdu.said["driver"]) == ("Sys-1", "redfish")
    assert "tls" not in pdu.said


def test_a_system_that_nobody_names_is_asked_and_not_guessed():
    """Lost: another machine of the chassis, cut."""
    board, pdu, _site = made()
    bmcs.by_redfish(pdu, board, "http://10.0.9.1", None, "node_id")
    assert "outlet" not in board.said
    assert board.asked["outlet"].startswith("nodes.json, node1: has no node_id: give the Id of its system")
    assert pdu.said["tls"] is False


def test_a_machine_that_somebody_has_is_no_free_board():
    """Lost: its power: what is free and on is switched off."""
    board, _pdu, _site = made()
    board.take("outlet", "1")
    bmcs.in_use(board, "deployed")
    assert "pdu" not in board.said
    assert board.asked["pdu"] == (
        "nodes.json, node1: it is deployed, and may be at work: end that first, and export it anew; "
        "answer bmc-node1 where it may go off all the same"
    )
    assert board.fed == ("bmc-node1", "1"), "no other board gets its outlet"
