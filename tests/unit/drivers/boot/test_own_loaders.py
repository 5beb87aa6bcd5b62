# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loaders and DHCP options that a site's own boot driver declares: what dnsmasq, in.tftpd and nginx make of them.

Tests drivers/boot/http_client.py, drivers/boot/packet_sockets.py.
"""

from __future__ import annotations

import os
import shutil
import socket
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import (
    dhcp,
    http_client,
    packet_sockets,
    phases,
    tftp_client,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import made
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside.source import read
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import outside_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named
from ansible_collections.hetero.compute.tests.unit.drivers.boot import net_booted
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import CPU
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import rendered

OPTIONS = 'DHCP_OPTIONS = {209: "grub/{name}.cfg", 210: "http://{server}/{id}/"}\n'
BOARDS = parse("".join(f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 0 0 grub 1 {CPU}\n" for n in range(2)))


def facts(text, dhcp=True, driver="grub"):
    """(facts for the role, defects, notes) of a plan whose board 0 has the driver of this text."""
    plan = Plan(server=net_booted.SERVER, dhcp=dhcp, wiring={"0": {"driver": driver}, "1": {}})
    plan.boot_drivers, plan.drivers = ["grub"], [{"path": "boot_drivers/grub.py", "text": text}]
    found = Findings()
    outside_check.loads(plan, outside_check.known(plan, found), BOARDS, found)
    return found.facts, [str(one) for one in found.defects], [str(one) for one in found.notes]


@pytest.fixture
def declared(tmp_path):
    """The facts of the guide's driver with options, whose loader lies in this test's folder."""
    source = tmp_path / "grub.signed"
    source.write_bytes(os.urandom(3000))
    text = named(guide("boot_driver"), "boot-loader")
    assert made(read("/drivers/grub.py", text.encode())).shared_file == "grubnetx64.efi"
    line = next(line for line in text.splitlines() if line.startswith("LOADERS"))
    text = text.replace(line, f'LOADERS = {{"grubnetx64.efi": "{source}"}}\n{OPTIONS}')
    found, defects, notes = facts(text.replace('PACKAGES = ["grub-efi-amd64-signed"]', ""))
    assert (defects, notes) == ([], [])
    return found


def test_the_guides_loader_is_known_before_its_package_is_there():
    """Lost: a first set-up that leaves out what the driver needs, for its package comes with that set-up."""
    found, defects, _notes = facts(named(guide("boot_driver"), "boot-loader"))
    assert defects == []
    source = "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"
    assert found["loaders"] == [dict(name="grubnetx64.efi", source=source, pattern="grubnetx64\\.efi")]
    assert found["loads"] == {"board0": dict(boot_file="grubnetx64.efi", options=[])}


def test_the_guides_loader_finds_its_entry():
    """Lost: the boot of each such board. Debian's signed netboot GRUB reads the configuration in its memory disk, which
    is `source $prefix/grub.cfg` with /grub for the prefix, and so looks for no name with a MAC.
    """
    text = named(guide("boot_driver"), "boot-loader")
    config = SimpleNamespace(tftp_root="/tftpboot")
    driver = made(read("/drivers/grub.py", text.encode()))(SimpleNamespace(config=config))
    assert driver.entry_paths(BOARDS[1]) == ["/tftpboot/10.0.2.2/grub/grub.cfg"]
    assert sorted(driver.files(BOARDS[1])) == ["grub.cfg", "initrd_1", "vmlinux_1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of one's own needs root: run as root")
@pytest.mark.skipif(bool({"dnsmasq", "in.tftpd", "nginx"} & set(net_booted.missing())), reason="needs the servers")
def test_the_servers_give_it_to_its_boards(declared, tmp_path):
    """Lost: a fork of the role, for boards whose firmware starts neither iPXE nor U-Boot."""
    with net_booted.proxy(megabytes=0.01, **declared) as proxy:
        (loader,) = declared["loaders"]
        shutil.copy(loader["source"], proxy.root / loader["name"])
        offer = asked(net_booted.MAC)
        assert offer["file"] == "grubnetx64.efi"
        assert offer["server"] == net_booted.SERVER
        assert offer["options"][209] == b"grub/board0.cfg"
        assert offer["options"][210] == b"http://10.0.2.254/0/"
        wanted = (tmp_path / "grub.signed").read_bytes()
        assert tftp_client.get(net_booted.SERVER, "/grubnetx64.efi", Deadline(5)) == wanted
        assert http_client.get(net_booted.SERVER, 80, "grubnetx64.efi", Deadline(5)) == wanted
        with pytest.raises(HeteroError):
            tftp_client.get(net_booted.SERVER, "grubnetx64xefi", Deadline(2))


def asked(mac):
    """What DHCP offers to PC firmware with that MAC: file, next server, options."""
    xid = os.urandom(4)
    question = dhcp.discover(mac, xid, relay=net_booted.SERVER)
    deadline = Deadline(10)
    with packet_sockets.ear(packet_sockets.ETH_P_IP, packet_sockets.DHCP, "lo") as ear, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as mouth:
        mouth.bind((net_booted.SERVER, 0))
        ear.settimeout(0.3)
        while not deadline.passed:
            mouth.sendto(question, (net_booted.SERVER, dhcp.SERVER_PORT))
            try:
                payload = phases.udp_payload(ear.recv(2048))
            except TimeoutError:
                continue
            said = dhcp.read(payload)
            if said and said.op == dhcp.REPLY_OP and said.xid == xid:
                file = payload[108:236].split(b"\0")[0].decode()
                server = socket.inet_ntoa(payload[20:24])
                return dict(file=file, server=server, options=dhcp._options(payload[dhcp.FIXED :]))
    raise AssertionError("no offer")


def test_boards_of_other_drivers_are_told_what_they_were(declared):
    """Lost: the boots of all other boards, to the one file that a site's driver names."""
    boards = [dict(vars(board), name=board.name) for board in BOARDS]
    before = rendered("dnsmasq.conf.j2", boards).splitlines()
    after = rendered("dnsmasq.conf.j2", boards, loaders=declared["loaders"], loads=declared["loads"]).splitlines()
    assert "grub" not in "".join(before)
    assert "tag:!own" not in "".join(before)
    others = [line.replace("tag:!own,", "") for line in after if "tag:board0,grub" not in line]
    assert [line for line in others if line not in before] == [
        "# What boot drivers of the site's own say of their boards.",
        'dhcp-option-force=tag:board0,209,"grub/board0.cfg"',
        'dhcp-option-force=tag:board0,210,"http://10.0.2.254/0/"',
    ]
    hosts = rendered("dhcp-hosts.j2", boards, loads=declared["loads"], _tftp_proxy_uboot=[]).splitlines()
    assert [("set:own" in line) for line in hosts] == [True, False]
    assert rendered("tftp.map.j2") == rendered("tftp.map.j2", loads=declared["loads"])


def test_who_gives_no_addresses_is_told_what_another_server_has_to_say(declared):
    """Lost: why boards that have a loader ask for another one."""
    text = f'BOOT_API = 1\nBOOT_FILE = "boot.ipxe"\n{OPTIONS}'
    _found, _defects, notes = facts(f"{text}PACKAGES = ['no-such-package-0']\n", dhcp=False)
    assert notes == [
        "tftp_proxy_boot_drivers, grub: says what DHCP is to tell its boards, and this proxy gives no addresses: have "
        "the DHCP server of the boards say it"
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("LOADERS = ['x']", "its LOADERS are no mapping of plain texts"),
        ("LOADERS = {'a/b': '/x'}", "its LOADERS have 'a/b', which is no name of a file"),
        ("LOADERS = {'vmlinux_0': '/x'}", "its LOADERS have vmlinux_0, which is the proxy's own, or a board's"),
        ("LOADERS = {'10.0.2.1': '/x'}", "its LOADERS have 10.0.2.1, which is the proxy's own"),
        ("LOADERS = {'boot.ipxe': '/x'}", "its LOADERS have boot.ipxe, which is the proxy's own"),
        ("LOADERS = {'x.efi': 'x.efi'}", "its LOADERS have no path for x.efi"),
        ("LOADERS = {'x.efi': '/usr/lib/no-such.efi'}", f"there is no /usr/lib/no-such.efi on {THIS_NODE}"),
        ("BOOT_FILE = 'a b'", "its BOOT_FILE is no name of a file: name one of its LOADERS"),
        ("DHCP_OPTIONS = {3: '10.0.2.9'}", "its DHCP_OPTIONS have 3, which the proxy's DHCP says by itself"),
        ("DHCP_OPTIONS = {'x': 'y'}", "its DHCP_OPTIONS have 'x', which is no option's number"),
        ("DHCP_OPTIONS = {209: 'a\\\\nport=53'}", "its DHCP_OPTIONS have no value for 209"),
        ("DHCP_OPTIONS = {209: 'a\"b'}", "its DHCP_OPTIONS have no value for 209"),
        ("DHCP_OPTIONS = {209: '{host}'}", "its DHCP_OPTIONS have {host} for 209, which stands for nothing: known"),
    ],
)
def test_what_cannot_be_is_said_before_the_set_up(line, words):
    """Lost: dnsmasq, which takes no configuration with it, for all boards; or a board's own file, to everybody."""
    driver = "from hetero_drivers.boot import Pxe\n\n\nclass Own(Pxe):\n    pass\n"
    (defect,) = facts(f"BOOT_API = 1\n{line}\n{driver}")[1]
    assert defect.startswith("tftp_proxy_boot_drivers, grub.py: "), defect
    assert words in defect
