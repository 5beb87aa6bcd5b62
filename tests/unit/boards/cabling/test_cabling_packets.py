# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cabling check on real packets: the lab's PDU by telnet, on its outlets programs that really ask by DHCP.

They ask over the loopback, where the proxy's packet socket hears them by the MAC address in their requests.
"""

from __future__ import annotations

import json
import os
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import (
    cabling,
    learning,
    outlet_tests,
)
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu, alive

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a packet socket needs root: run as root")

#: A DHCPDISCOVER as iPXE sends it: BOOTREQUEST, the MAC in chaddr, the magic cookie, option 60. Then it waits.
FIRMWARE = """
import socket, sys, time
print("firmware", flush=True)
packet = bytes([1, 1, 6, 0]) + bytes(24) + bytes.fromhex(sys.argv[1].replace(":", "")) + bytes(202)
packet += bytes([99, 130, 83, 99, 53, 1, 1, 60, 9]) + b"PXEClient" + bytes([255])
ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        ask.sendto(packet, ("127.0.0.1", 67))
    except ConnectionRefusedError:
        pass  # nobody answers here
    time.sleep(0.2)
"""


@pytest.fixture
def pdu(site, tmp_path, monkeypatch):
    """Outlets 5 and 6 feed the boards 1 and 0, outlet 7 nothing, outlet 8 the board that it should."""
    monkeypatch.setattr(outlet_tests, "SETTLE", 0.3)
    folder = tmp_path / "pdu"
    folder.mkdir()

    def fed(board):
        argv = [sys.executable, "-c", FIRMWARE, f"00:1a:ca:00:57:9{board}"]
        return {"name": "x", "argv": argv, "console": str(folder / f"{board}.log")}

    emulated = EmulatedPdu(folder, name="pdu-t", outlets={"5": fed(1), "6": fed(0), "8": fed(3)})
    site.config["pdus"] = {"pdu-t": emulated.settings}
    (site.folder / "credentials.json").write_text(json.dumps({"pdu-t": emulated.secrets}))
    for number in range(4):
        wiring = {"pdu": "pdu-t", "outlet": str(number + 5), "driver": "pxe", "console": str(folder / f"{number}.log")}
        site.config["boards"][str(number)] = wiring
    site.write()
    yield emulated
    emulated.stop()


def test_a_machine_that_is_in_no_boards_file_is_told(site, pdu):
    """Lost: the address of a board that somebody forgot; or a wiring by which it is cut with another's."""
    site.config["boards"] = {str(number): {"driver": "pxe"} for number in range(4)}
    site.write()
    rows = (site.folder / "tilera_boards").read_text()
    (site.folder / "tilera_boards").write_text(rows.replace("00:1a:ca:00:57:91", "00:1a:ca:00:57:aa"))
    with site.proxy() as proxy:
        result = learning.learn(proxy, ["pdu-t:5", "pdu-t:8"], outlet_tests.Options(timeout=10))
    found = [(one["verdict"], one["found"], one["macs"]) for one in result["outlets"]]
    assert found == [("unknown", [], ["00:1a:ca:00:57:91"]), ("found", [3], [])]
    said = "feeds a machine that is in no boards file: 00:1a:ca:00:57:91 asked for an address: add it there"
    assert said in result["outlets"][0]["text"]
    assert {outlet["state"] for outlet in pdu.outlets.values()} == {"off"}


def test_two_swapped_cables_and_a_dead_outlet(site, pdu):
    """Lost: the check on what real boards say and real PDUs show."""
    with site.proxy() as proxy:
        result = cabling.check(proxy, [0, 1, 2, 3], cabling.Options(timeout=20))
    found = [(one["verdict"], one["found"]) for one in result["boards"]]
    assert found == [("other", [1]), ("other", [0]), ("nothing", []), ("right", [3])]
    assert {board: wiring["outlet"] for board, wiring in result["wiring"].items()} == {0: "6", 1: "5"}
    assert "outlet 5 feeds board1 (00:1a:ca:00:57:91), not this board: boot request after" in result["msg"]
    assert {outlet["state"] for outlet in pdu.outlets.values()} == {"off"}
    assert not any(alive(outlet["pid"]) for outlet in pdu.outlets.values() if outlet["pid"])
    seconds = [one["seconds"] for one in result["boards"]]
    assert seconds[2] >= 20
    assert min(seconds) < 20, "who answers is not waited for as one who does not"
    assert pdu.logouts == 12, "status, on, off: a short session each, so that others get their turn"
