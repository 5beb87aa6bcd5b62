# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant on a host's bridge, with raw frames and with connections, before the rules are loaded and after.

Lost without: a neighbour takes the address or the MAC of another's instance and reads what was meant for it, or logs in
to the host and the proxy by the network that only they are in.

Tests hypervisors/pinning.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Interface

import frames
import pytest
from frames import ARP, BROADCAST, IPV4, IPV6, LLDP, MARK, PROVIDERS_VLAN, VLAN

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.bridge import bridge_of
from ansible_collections.hetero.compute.tests.unit.hypervisors.pinning.conftest import (
    ALICE,
    BOB,
    GATEWAY,
    LAST,
    OTHER,
    PLAN,
    PROXY,
    SERVICE,
    WORLD,
)

OURS, ITS = pinning.mac(ALICE), pinning.mac(BOB)
#: A third tenant's: nobody is at home there, and frames to it go out at each port.
ABSENT = "10.0.81.12"
HONEST = frames.frame(BROADCAST, OURS, IPV4, frames.udp(ALICE, BOB, 1024, 7))
FORGED = {
    "another's address": frames.frame(BROADCAST, OURS, IPV4, frames.udp(ABSENT, BOB, 1024, 7)),
    "the gateway's address": frames.frame(BROADCAST, OURS, IPV4, frames.udp(GATEWAY, BOB, 1024, 7)),
    "another's MAC": frames.frame(BROADCAST, pinning.mac(ABSENT), IPV4, frames.udp(ALICE, BOB, 1024, 7)),
    "another's MAC and address": frames.frame(BROADCAST, pinning.mac(ABSENT), IPV4, frames.udp(ABSENT, BOB, 1024, 7)),
    "ARP: the gateway is here": frames.frame(BROADCAST, OURS, ARP, frames.arp(OURS, GATEWAY, BOB)),
    "ARP: our address is elsewhere": frames.frame(BROADCAST, OURS, ARP, frames.arp(ITS, ALICE, GATEWAY)),
    "ARP from another's MAC": frames.frame(BROADCAST, pinning.mac(ABSENT), ARP, frames.arp(OURS, ALICE, BOB)),
    "ARP request that lies": frames.frame(BROADCAST, OURS, ARP, frames.arp(OURS, GATEWAY, BOB, operation=1)),
    "an offer of DHCP": frames.frame(BROADCAST, OURS, IPV4, frames.udp(ALICE, "255.255.255.255", 67, 68)),
    "an offer of DHCP from a port of one's own": frames.frame(
        BROADCAST, OURS, IPV4, frames.udp(ALICE, "255.255.255.255", 6767, 68)
    ),
    "a router's advertisement": frames.frame("33:33:00:00:00:01", OURS, IPV6, frames.router_advertisement()),
    "in a VLAN": frames.frame(BROADCAST, OURS, VLAN, b"\x00\x05\x08\x00" + frames.udp(GATEWAY, BOB, 1024, 7)),
    "honest, but in a VLAN": frames.frame(BROADCAST, OURS, VLAN, b"\x00\x05\x08\x00" + frames.udp(ALICE, BOB, 1024, 7)),
    "honest, but in a VLAN of a provider": frames.frame(
        BROADCAST, OURS, PROVIDERS_VLAN, b"\x00\x05\x08\x00" + frames.udp(ALICE, BOB, 1024, 7)
    ),
    "a protocol of its own": frames.frame(BROADCAST, OURS, 0x88B5, MARK),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_is_forged_reaches_nobody(net, what):
    assert net.heard("bob", FORGED[what]), "this test sends what would not arrive anyhow"
    net.load()
    assert not net.heard("bob", FORGED[what])
    assert not net.heard("host", FORGED[what], "hetero0")
    assert net.heard("bob", HONEST)


def test_the_bridge_does_not_learn_a_mac_that_is_another_s(net):
    """Frames to 01-80-C2-00-00-0E are not forwarded, and no rule sees them; a bridge learns of them all the same."""
    stolen = frames.frame("01:80:c2:00:00:0e", ITS, LLDP, MARK)

    def where():
        lines = net.run("host", "bridge", "fdb", "show", "br", "hetero0").stdout.splitlines()
        return [line.split()[2] for line in lines if line.startswith(ITS) and "permanent" not in line]

    net.load()
    for option, learned in ((0, ALICE), (1, BOB)):
        net.ip("host", f"link set hetero0 type bridge no_linklocal_learn {option}")
        net.reaches("bob", GATEWAY)
        assert where() == [pinning.port("lxc", BOB)]
        # Under load the kernel takes it after the sender has ended, and then what bob's connection still had to say.
        deadline = Deadline(60)
        while True:
            net.run("alice", "python3", frames.__file__, "send", "eth0", stolen.hex())
            net.reaches("alice", GATEWAY)
            if where() == [pinning.port("lxc", learned)] or deadline.passed:
                break
        assert where() == [pinning.port("lxc", learned)]


@pytest.mark.parametrize(("target", "name", "interface"), [(BOB, "bob", "eth0"), ("192.0.2.2", "world", "up0")])
def test_nobody_beyond_the_host_speaks_as_a_tenant(net, target, name, interface):
    """Lost: what a tenant's service takes of its neighbour alone; and machines near the host, to a stranger on another
    of its networks whose datagrams get the host's own address.
    """
    links = (net.run(end, "ip", "-json", "link", "show", "lan0").stdout for end in ("host", "world"))
    macs = [json.loads(link)[0]["address"] for link in links]
    forged, honest = (
        frames.frame(*macs, IPV4, frames.udp(source, target, 1024, 7, data=data))
        for source, data in ((ALICE, MARK), (PROXY, LAST))
    )
    for loaded in (False, True):
        if loaded:
            net.load()
        net.run("host", "busybox", "ping", "-c1", "-W5", target)
        assert net.heard(name, forged, interface, sender=("world", "lan0", honest)) != loaded


def test_a_port_of_ours_without_a_pin_passes_nothing(net):
    """A network that was made smaller, an instance that nobody knows: closed, not open."""
    net.load(addresses=[BOB, "10.0.81.13"])
    assert not net.heard("bob", HONEST, seconds=2)


def test_tenants_reach_each_other_and_the_world_but_not_the_host_and_its_networks(net):
    net.load()
    assert net.reaches("alice", BOB)
    assert net.reaches("alice", WORLD), "masqueraded: the world has no way back to the tenants' network"
    for closed in (GATEWAY, "192.0.2.1", "10.0.2.241", PROXY):
        assert not net.reaches("alice", closed), closed
    assert net.run("alice", "busybox", "ping", "-c1", "-W2", GATEWAY, check=False).returncode == 0
    net.ip("world", "route add 10.0.81.0/24 via 10.0.2.241")
    try:
        assert net.reaches("world", ALICE), "whoever has a way in is answered"
        assert net.reaches("host", ALICE)
    finally:
        net.ip("world", "route del 10.0.81.0/24")


@pytest.mark.parametrize(("bound", "few"), [("CONNECTIONS", 4), ("BEGIN", "1/hour burst 4 packets")])
def test_a_tenant_has_a_number_of_connections_and_takes_none_of_others(net, monkeypatch, bound, few):
    """Lost: the host, to the controller and to all who have instances there, for the 5 days for which it remembers as
    many connections of one tenant as it has room for.
    """
    monkeypatch.setattr(pinning, bound, few)
    net.load(open_ports=[f"tcp/{OTHER}"])
    for name, interface in (("bob", "eth0"), ("host", "hetero0")):  # what was forged before there were rules
        net.ip(name, f"neigh flush dev {interface}")
    assert net.holds("alice", WORLD, GATEWAY) == 4
    assert net.reaches("bob", WORLD)
    assert net.reaches("bob", GATEWAY, OTHER)
    assert net.reaches("alice", WORLD) == (bound == "CONNECTIONS"), "those are closed"


def test_without_the_rules_all_of_that_is_open(net):
    """What the rules are for."""
    net.ip("world", "route add 10.0.81.0/24 via 10.0.2.241")
    try:
        assert all(net.reaches("alice", address) for address in (GATEWAY, "192.0.2.1", PROXY))
    finally:
        net.ip("world", "route del 10.0.81.0/24")


def test_what_the_operator_opens_is_open(net):
    net.load(open_ports=[f"tcp/{OTHER}"], open_networks=[PROXY])
    assert net.reaches("alice", GATEWAY, OTHER)
    assert not net.reaches("alice", GATEWAY, SERVICE)
    assert net.reaches("alice", PROXY)


def test_on_the_site_s_own_bridge_the_host_is_closed_to_tenants_only(net):
    """The operator's way to the host may lead over that bridge."""
    net.load(make_bridge=False, addresses=[ALICE, ALICE])
    assert not net.reaches("alice", GATEWAY)
    assert not net.heard("bob", FORGED["the gateway's address"])
    port = pinning.port("lxc", BOB)
    net.ip("host", f"link set {port} down", f"link set {port} name eno1", "link set eno1 up")
    try:
        assert net.reaches("bob", GATEWAY), "a machine of the site's, on a port that is not ours"
    finally:
        net.ip("host", "link set eno1 down", f"link set eno1 name {port}", f"link set {port} up")


def test_loaded_is_what_the_kernel_has(net, monkeypatch):
    """A host whose rules somebody flushed is set right by its set-up, and starts nothing before."""
    ended = pinning.ended
    namespace = ["nsenter", f"--net=/proc/{net.kept['host'].pid}/ns/net"]
    monkeypatch.setattr(pinning, "ended", lambda argv, *words, **more: ended([*namespace, *argv], *words, **more))
    bridge = net.load()
    assert pinning.loaded(bridge)
    pinning.must_hold("lxc", ALICE, "ml-8")
    assert not pinning.loaded(replace(bridge, closed=()))
    net.nft("delete table inet hetero_bridge")
    assert not pinning.loaded(bridge)
    net.load()
    assert pinning.loaded(bridge)
    net.flush()
    assert not pinning.loaded(bridge)
    with pytest.raises(pinning.Refused, match=r"ml-8: its address 10.0.81.10 is not pinned.*restart hetero-bridge"):
        pinning.must_hold("lxc", ALICE, "ml-8")


def test_containers_and_guests_have_tables_of_their_own(net):
    net.load()
    guests = dict(kind="kvm", bridge="hetero1", network="10.0.82.0/24", addresses=["10.0.82.10"] * 2)
    net.nft(pinning.rules(bridge_of(replace(PLAN, **guests), [], [])))
    assert not net.heard("bob", FORGED["another's address"])
    assert net.run("host", "nft", "list", "tables").stdout.split().count("hetero_guests") == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(open_ports=["22"]), "gpu_lxc_open_ports: '22' is no port: write ports like tcp/22"),
        (dict(open_ports=["tcp/70000"]), "'tcp/70000' is no port"),
        (dict(closed_networks=["10.0.2"]), "gpu_lxc_closed_networks: "),
        (dict(open_networks=["proxy"], kind="kvm"), "kvm_guests_open_networks: "),
        (dict(addresses=["10.0.0.0", "10.1.0.0"]), "gpu_lxc_addresses: 10.0.0.0 to 10.1.0.0 is no range of 1 to 65536"),
    ],
)
def test_a_wrong_option_is_named(wrong, said):
    with pytest.raises(BadInput, match=said):
        bridge_of(replace(PLAN, **wrong), [], [])


def test_an_address_of_an_instance_that_is_none_is_named():
    """Lost: what is wrong, in a traceback, while the host cannot be set up."""
    with pytest.raises(BadInput, match=r"'10\.0\.81\.x': an instance of the host's database has this address"):
        bridge_of(PLAN, ["10.0.81.x"], [])


def test_what_is_taken_is_pinned_and_what_is_near_is_closed():
    """An address that an instance has stays its own when the range is another; an interface's network is closed."""
    has = {"lo": "127.0.0.1/8", "eth0": "10.0.2.241/24", "hetero0": "10.0.81.1/24"}
    around = [(name, IPv4Interface(address)) for name, address in has.items()]
    bridge = bridge_of(replace(PLAN, closed_networks=["10.0.2.128/25", "10.0.9.0/24"]), ["10.0.81.99"], around)
    assert bridge.addresses == (ALICE, BOB, ABSENT, "10.0.81.13", "10.0.81.99")
    assert bridge.closed == ("10.0.2.0/24", "10.0.9.0/24", "169.254.0.0/16")
