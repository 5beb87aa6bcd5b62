# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two boards of the lab as servers: one by Redfish, which boots once, and one by IPMI with its console over LAN.

Their BMCs are other people's. Both boards come up from the lab's proxy node as any other board does.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from servers import FROM_DISK, Line, Server

from ansible_collections.hetero.compute.tests.unit.drivers.power import emulated_redfish as redfish
from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import OBEY, SimulatedBmc

pytestmark = pytest.mark.long
#: Addresses of the BMCs beside those of the lab's PDUs, and on the proxy who signed the first one's certificate.
REDFISH, IPMI, AUTHORITY = "10.0.100.31", "10.0.100.32", "/etc/ssl/bmc-a.pem"
#: Seconds that a boot may take beside other load: firmware of a PC takes four times what the lab's own does.
PATIENCE = 1200
#: Where the proxy's conserver logs the second board's console.
LOG = "/var/log/hetero/conserver/board1.log"


@pytest.fixture(scope="module")
def servers(up, tmp_path_factory):
    """Boards 0 and 1 as servers in the proxy's wiring; afterwards they hang on the lab's PDU again."""
    with ExitStack() as stack:
        for address in (REDFISH, IPMI):
            up.inside("ip", "address", "add", f"{address}/24", "dev", "management")
            stack.callback(up.inside, "ip", "address", "del", f"{address}/24", "dev", "management")
        both = SimpleNamespace(within=("nsenter", f"--net=/run/netns/{up.description['namespace']}"))
        for name, number, standing in (("redfish", 0, "c"), ("ipmi", 1, "n")):
            folder = tmp_path_factory.mktemp(name)
            server = Server(up, folder, number, standing)
            setattr(both, name, server)
            line = Line(server)
            stack.callback(line.close)
            stack.callback(server.stop)
        both.place = redfish.Place(REDFISH, 443, both.within)
        emulator, folder = Path(__file__).with_name("redfish_server.py"), tmp_path_factory.mktemp("bmc-a")
        emulated = redfish.emulated_redfish(folder, both.place, emulator, MACHINE=str(both.redfish.program))
        settings = stack.enter_context(emulated)
        folder, machine = tmp_path_factory.mktemp("bmc-b"), both.ipmi.program
        both.bmc = SimulatedBmc(folder, IPMI, 623, within=both.within, line=line.device)
        stack.callback(both.bmc.stop)
        both.bmc.does(f'if [ "$3" = 1 ]; then {machine} on; else {machine} off; fi; {OBEY}')
        up.on_node("proxy1", f"cat >{AUTHORITY}", input=Path(settings["tls_ca"]).read_text())
        stack.callback(up.play, "proxy")
        up.play("proxy", **wiring(up, both.bmc))
        yield both


def wiring(lab, bmc):
    """The lab's wiring, with boards 0 and 1 on BMCs of their own."""
    inventory = yaml.safe_load((lab.folder / "inventory" / "lab.yml").read_text())
    said = inventory["proxies"]["hosts"]["proxy1"]
    pdus = {
        "bmc-a": {"driver": "redfish", "host": REDFISH, "tls_ca": AUTHORITY, "boot_once": "pxe"},
        "bmc-b": {"driver": "ipmi", "host": IPMI, "cipher_suite": 3},
    }
    boots = {key: said["tftp_proxy_boards"][0][key] for key in ("driver", "cmdline")}
    boards = {
        0: {**boots, "disk": "none", "pdu": "bmc-a", "outlet": redfish.NODES[0]},
        1: {**boots, "disk": "none", "pdu": "bmc-b", "outlet": "1", "console_from": {"type": "ipmi"}},
    }
    return {
        "tftp_proxy_pdus": {**said["tftp_proxy_pdus"], **pdus},
        "tftp_proxy_pdu_credentials": {
            **said["tftp_proxy_pdu_credentials"], "bmc-a": redfish.SECRETS, "bmc-b": bmc.secrets
        },
        "tftp_proxy_boards": {str(key): one for key, one in {**said["tftp_proxy_boards"], **boards}.items()},
    }  # fmt: skip


def test_a_server_by_redfish_boots_once_from_the_network(lab, servers):
    """Lost: servers, which boot from their disks whatever is served to them, or from the network for ever after."""
    server = servers.redfish
    played = lab.provision("rita", board=0, hetero_boot_timeout=PATIENCE)
    assert re.search(rf"bmc-a outlet {redfish.NODES[0]}: off → on, read back", played.output), played.output
    assert lab.ssh("rita", "uname -n; findmnt -no FSTYPE /").split() == ["rita", "nfs"]
    assert server.pid
    assert FROM_DISK not in server.said
    lab.terminate("rita")
    assert server.pid is None
    # another client, who says nothing of the boot
    path = f"/redfish/v1/Systems/{redfish.NODES[0]}"
    assert redfish.fence(443, path, "on", redfish.SECRETS, servers.place) == (0, "")
    server.says(FROM_DISK)
    assert redfish.fence(443, path, "off", redfish.SECRETS, servers.place)[0] == 0
    assert server.pid is None


def test_a_server_by_ipmi_has_its_console_over_lan(lab, servers):
    """Lost: servers without a serial port that one can reach: what their firmware says, and a way to type."""
    server = servers.ipmi
    played = lab.provision("ivy", board=1, hetero_boot_timeout=PATIENCE)
    assert "bmc-b outlet 1: off → on, read back" in played.output
    assert lab.ssh("ivy", "uname -n").strip() == "ivy"
    assert server.pid
    said = lab.on_proxy(f"cat {LOG}")
    for text in ("iPXE", "udhcpc: lease of 10.0.2.2 obtained"):  # of its firmware, and of its system
        assert re.search(rf"^\[[^\]]+\].*{text}", said, re.M), said
    assert "udhcpc: lease of 10.0.2.2 obtained" in lab.play("console", instance="ivy", lines=2000).output
    lab.terminate("ivy")
    assert server.pid is None
    assert servers.bmc.asked == ["on", "off"]
