# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's end of the boards' network, with the role's dnsmasq and packet filter, and a stranger's end of it.

Both are network namespaces; who plays a board takes its MAC and its address.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import jinja2
import pytest

ROLE = Path(__file__).resolve().parents[4] / "roles" / "tftp_proxy"
EVIL = "02:66:66:66:66:66"
BOARDS = [
    dict(id=number, name=f"board{number}", ip=f"10.0.2.{number + 1}", mac=f"00:1a:ca:00:57:9{number}", near=True)
    for number in range(3)
]

#: What tests that use this need.
NEEDS = [
    pytest.mark.skipif(not (shutil.which("nft") and shutil.which("dnsmasq")), reason="needs nftables and dnsmasq"),
]


def rendered(name, boards=BOARDS, **changes):
    """A template of the role, with what its variables are in the lab."""
    loader = jinja2.FileSystemLoader(ROLE / "templates")
    jinja = jinja2.Environment(loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined)
    jinja.filters["bool"] = bool
    machine = dict(interface="eth0", network="10.0.2.0", netmask="255.255.255.0", boards=boards)
    machine.update(nfs_server=changes.pop("nfs_server", "ganesha"))
    machine.update({key: changes.pop(key, empty) for key, empty in (("loaders", []), ("loads", {}))})
    names = dict(
        _tftp_proxy_machine=machine,
        _tftp_proxy_tilera=[0],
        tftp_proxy_tftp_root="/tftpboot",
        _tftp_proxy_uboot=[1],
        _tftp_proxy_monitor_open=[2],
        _tftp_proxy_nfs_ports="2049, 20048",
        _tftp_proxy_nfs_connections=16,
        _tftp_proxy_nfs_connections_all=1024,
        _tftp_proxy_ssh_ports="22",
        _tftp_proxy_ssh_connections=2,
        _tftp_proxy_ssh_connections_all=8,
        _tftp_proxy_connect_rate="10/second burst 64 packets",
        _tftp_proxy_tftp_rate="10/second burst 64 packets",
        _tftp_proxy_tftp_transfers=128,
        _tftp_proxy_rpc_rate="10/second burst 64 packets",
        _tftp_proxy_solicit_rate="1/second burst 10 packets",
        _tftp_proxy_tftp_ports="28672:32767",
        _tftp_proxy_dhcp_rate="20/second burst 40 packets",
        tftp_proxy_pinned=True,
        tftp_proxy_boards_interface_ssh=True,
        tftp_proxy_boards_interface_ra=False,
        tftp_proxy_dhcp=True,
        tftp_proxy_boot_http=False,
        tftp_proxy_boot_http_port=80,
        _tftp_proxy_http_url="http://10.0.2.254",
        _tftp_proxy_http_connections=16,
        _tftp_proxy_http_connections_all=1024,
        _tftp_proxy_consoles=[],
        _tftp_proxy_console_ports="3782-3799",
        tftp_proxy_pdus={},
        tftp_proxy_dhcp_router="",
        tftp_proxy_dhcp_ra_prefix="",
        tftp_proxy_server="10.0.2.254",
        tftp_proxy_run_folder="/run/hetero",
    )
    return jinja.get_template(name).render(**dict(names, **changes))


def inside(namespace, *argv, **more):
    return subprocess.run(["nsenter", f"--net=/run/netns/{namespace}", *argv], check=True, timeout=600, **more)


def python(namespace, script):
    """Run a script in a namespace; what it prints, as JSON."""
    argv = [sys.executable, "-c", textwrap.dedent(script)]
    return json.loads(inside(namespace, *argv, stdout=subprocess.PIPE, text=True).stdout)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """(proxy, other): the proxy's end with the role's dnsmasq and filter, and the other end, which is at 10.0.2.66."""
    folder = tmp_path_factory.mktemp("dhcp")
    names = [f"e-neighbours-{name}-{os.getpid()}" for name in ("proxy", "other")]
    proxy, other = names
    (folder / "hosts").write_text(rendered("dhcp-hosts.j2"))
    config = rendered("dnsmasq.conf.j2").replace("/etc/hetero/dhcp-hosts", str(folder / "hosts"))
    (folder / "dnsmasq.conf").write_text(config + "user=root\n")
    (folder / "filter.nft").write_text(rendered("filter.nft.j2"))
    server = None
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        ends = ["ip", "link", "add", "eth0", "netns", proxy, "type", "veth", "peer", "eth0", "netns", other]
        subprocess.run(ends, check=True)
        inside(other, "ip", "link", "set", "eth0", "address", EVIL)
        for name, address in ((proxy, "10.0.2.254/24"), (other, "10.0.2.66/24")):
            inside(name, "ip", "address", "add", address, "dev", "eth0")
            inside(name, "ip", "link", "set", "eth0", "up")
            inside(name, "ip", "link", "set", "lo", "up")
        inside(proxy, "nft", "--file", folder / "filter.nft")
        argv = ["dnsmasq", "--keep-in-foreground", f"--conf-file={folder}/dnsmasq.conf", "--pid-file"]
        server = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{proxy}", *argv], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        yield proxy, other
    finally:
        if server:
            server.kill()
            server.wait()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.fixture
def board0(network):
    """The other end, as board0: with its address and its MAC."""
    proxy, other = network
    inside(other, "ip", "link", "set", "eth0", "address", BOARDS[0]["mac"])
    inside(other, "ip", "address", "replace", "10.0.2.1/24", "dev", "eth0")
    inside(proxy, "ip", "neigh", "flush", "dev", "eth0")
    yield proxy, other
    inside(other, "ip", "address", "del", "10.0.2.1/24", "dev", "eth0")
    inside(other, "ip", "link", "set", "eth0", "address", EVIL)
    inside(proxy, "ip", "neigh", "flush", "dev", "eth0")


@pytest.fixture
def ruled(network, tmp_path):
    """A function that has the proxy filter by these settings, until the test is over."""
    proxy, _other = network

    def rule(**changes):
        (tmp_path / "rules").write_text(rendered("filter.nft.j2", **changes))
        inside(proxy, "nft", "--file", tmp_path / "rules")

    yield rule
    rule()
