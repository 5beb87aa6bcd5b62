# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant on a host's bridge may send, as rules of nftables: only with its own MAC and IPv4 address, and not to
the host.

An instance's port on the bridge and its MAC follow from its address. So the rules are the same whoever has the address,
and hold before an instance starts, after a restart inside it, and after a killed removal. Packets from an instance's
port without a pin are dropped. Others know which addresses there are, and when rules are loaded.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Iterable

from ..core.command import Limits, command, ended
from ..core.deadline import Deadline
from ..core.errors import Refused

#: Kind of instance → name of the tables with its rules (one in each nftables family); and → how its ports' names begin.
TABLES = {"lxc": "hetero_bridge", "kvm": "hetero_guests"}
PORTS = {"lxc": "hetc", "kvm": "hetg"}
#: Kind → the unit that loads its rules.
UNITS = {"lxc": "hetero-bridge", "kvm": "hetero-guests-bridge"}
#: First two octets of a MAC, which no vendor has (bit "locally administered"). The four of the address follow.
MAC = (0x02, 0x68)
#: Addresses at most: as many as fit in two octets. 65,000 take nft 0.5 s and 3 MB.
MOST = 1 << 16
#: Seconds for nft to load or list rules.
NFT_TIME = 60.0
#: Connections at a time of one tenant to and through the host, and how fast they begin. The kernel remembers those of
#: all tenants, and the host's own, in one table (nf_conntrack_max: 262,144 with 4 GB of memory), one that nobody closes
#: for 5 days; a full one takes no further connection of anybody. It counts them in a list of each tenant's, to which
#: each new one comes first, and from which it takes 9 that ended each 4 ms (nf_conncount.c): so these have a rate. It
#: does not count those of TCP that ended (already_closed there), which it remembers for 120 s: ours for ENDED seconds,
#: so that at BEGIN's rate they are as many as CONNECTIONS. One tenant takes 13,096 places at most, with BEGIN's burst.
CONNECTIONS, BEGIN, ENDED = 4096, "500/second burst 5000 packets", 8
#: Rejected and not dropped, so that nobody waits for an answer.
REJECT = "reject with icmpx type admin-prohibited"


@dataclass(frozen=True)
class Bridge:
    """A bridge with tenants.

    :param kind: of its instances, a key of TABLES.
    :param ours: whether only tenants are on it, with the host as their router.
    :param network: of the tenants.
    :param addresses: those that tenants have or may get.
    :param nat: whether they reach other networks by the host's address.
    :param open_ports: of the host, as tcp/PORT or udp/PORT.
    :param closed: networks to which the host forwards nothing.
    :param opened: networks or addresses within these to which it does forward.
    """

    kind: str
    name: str
    ours: bool
    network: str
    addresses: tuple[str, ...]
    nat: bool
    open_ports: tuple[str, ...]
    closed: tuple[str, ...]
    opened: tuple[str, ...]


def port(kind: str, address: str) -> str:
    """Return the name of an instance's port on the bridge (12 of the 15 characters that Linux allows)."""
    return f"{PORTS[kind]}{int(ipaddress.IPv4Address(address)):08x}"


def mac(address: str) -> str:
    octets = bytes(MAC) + ipaddress.IPv4Address(address).packed
    return ":".join(f"{octet:02x}" for octet in octets)


def pin(kind: str, address: str) -> str:
    """Return an element of the set `pins`."""
    return f"{port(kind, address)} . {mac(address)} . {address}"


def question(kind: str, address: str) -> str:
    """Return nft's command that tells whether a pin is loaded."""
    return f"get element bridge {TABLES[kind]} pins {{ {pin(kind, address)} }}"


def must_hold(kind: str, address: str, thing: str) -> None:
    """Raise Refused if no loaded rule keeps an instance to its address."""
    done = ended(["nft", question(kind, address)], thing, limits=Limits(NFT_TIME))
    if done.returncode != 0:
        what = f"its address {address} is not pinned on the bridge"
        raise Refused(what, thing, f"on the host: systemctl restart {UNITS[kind]}")


def load(bridge: Bridge) -> None:
    """Load the rules. Earlier ones hold until then, without a gap."""
    remedy = "see whether this kernel has CONFIG_NF_TABLES_BRIDGE, NF_TABLES_ARP and NF_CONNTRACK_TIMEOUT"
    command(["nft", "--file", "-"], f"rules of {bridge.name}", remedy, timeout=NFT_TIME, stdin=rules(bridge))


def loaded(bridge: Bridge, deadline: Deadline | None = None) -> bool:
    """Return whether exactly these rules are loaded, by the mark in each of their tables."""
    text = rules(bridge)
    timeout = deadline.left if deadline else NFT_TIME
    # without the elements, of which there may be many
    chains = ended(["nft", "--terse", "list", "chains"], bridge.name, limits=Limits(timeout)).stdout
    return chains.count(f"chain {mark(bridge)} ") == text.count(f"chain {mark(bridge)} ")


def mark(bridge: Bridge) -> str:
    """Return the name of an empty chain, which contains a hash of its table's text."""
    return f"rules_{hashlib.sha256(_body(bridge).encode()).hexdigest()[:12]}"


def rules(bridge: Bridge) -> str:
    """Return all rules as one transaction of nft, which replaces earlier rules."""
    table = TABLES[bridge.kind]
    families = ("arp", "ip", "inet", "bridge")
    away = "".join(f"table {family} {table}\ndelete table {family} {table}\n" for family in families)
    return away + _body(bridge).replace(f" {table} {{\n", f" {table} {{\n    chain {mark(bridge)} {{ }}\n")


def _body(bridge: Bridge) -> str:
    parts = [_pins(bridge), _neighbours(bridge), _host(bridge)]
    return "".join([*parts, _nat(bridge)] if bridge.ours and bridge.nat else parts)


def _pins(bridge: Bridge) -> str:
    """Return the rules for frames as they come from a port, before the bridge learns anything from them.

    The host gives tenants their addresses, so a tenant that answers DHCP is an impostor, from whatever port: clients
    look at their own alone (68). Tenants have no IPv6, so that nobody can claim to be a router or a neighbour, and no
    VLAN: a bridge of the site's may have the host's own networks in some. Frames to 01-80-C2-00-00-0X (LLDP, PAUSE)
    pass these rules: _past takes what is in them; the bridge's option no_linklocal_learn keeps it from learning from
    them.
    """
    ours = f'iifname "{PORTS[bridge.kind]}*"'
    pins = ",\n            ".join(pin(bridge.kind, address) for address in bridge.addresses)
    elements = f"\n        elements = {{\n            {pins}\n        }}" if pins else ""
    return f"""\
table bridge {TABLES[bridge.kind]} {{
    set pins {{
        type ifname . ether_addr . ipv4_addr{elements}
    }}
    chain sent {{
        type filter hook prerouting priority dstnat; policy accept;
        {ours} jump of_tenant
    }}
    chain of_tenant {{
        ether type {{ 0x8100, 0x88a8 }} drop
        udp sport 67 drop
        udp dport 68 drop
        iifname . ether saddr . ip saddr @pins accept
        iifname . ether saddr . arp saddr ip @pins iifname . arp saddr ether . arp saddr ip @pins accept
        drop
    }}
}}
"""


def _host(bridge: Bridge) -> str:
    """Return the rules that close the host, except for answers, pings and open ports, and networks beyond it; and that
    bound a tenant's connections: with its first packet, for each of a flow that nobody answers is `new`.

    On a bridge with others than tenants, tenants are those addresses to which the bridge keeps them. On one of ours
    alone their network is nowhere else: who comes with an address of it by another interface is none of them.
    """
    tenants = f'iifname "{bridge.name}"'
    if not bridge.ours:
        spans = ipaddress.collapse_addresses(ipaddress.IPv4Network(address) for address in bridge.addresses)
        tenants += f" ip saddr {_set(map(str, spans))}"
    ports = "".join(f"        {protocol} dport {number} accept\n" for protocol, number in map(_port, bridge.open_ports))
    opened = f"        ip daddr {_set(bridge.opened)} accept\n" if bridge.opened else ""
    closed = f"        ip daddr {_set(bridge.closed)} {REJECT}\n" if bridge.closed else ""
    beyond = f'iifname != {{ "lo", "{bridge.name}" }} ip saddr {bridge.network} drop' if bridge.ours else ""
    begun = "ct state new ct status & confirmed != confirmed"
    return f"""\
table inet {TABLES[bridge.kind]} {{
{_counted()}    chain arrivals {{
        type filter hook prerouting priority raw; policy accept;
        {_past(bridge)}
        {beyond}
    }}
    chain to_host {{
        type filter hook input priority filter; policy accept;
        {tenants} jump of_tenant
    }}
    chain of_tenant {{
        ct state established,related accept
        {begun} jump counted
        icmp type echo-request accept
{ports}        {REJECT}
    }}
    chain through_host {{
        type filter hook forward priority filter; policy accept;
        {tenants} jump onward
    }}
    chain onward {{
        ct state established,related accept
        {begun} jump counted
        oifname "{bridge.name}" accept
{opened}{closed}    }}
}}
"""


def _past(bridge: Bridge) -> str:
    """Return the rule against what passed the bridge's rules: what came over the bridge comes from it, and no port."""
    return f'iifname "{PORTS[bridge.kind]}*" drop'


def _neighbours(bridge: Bridge) -> str:
    """Return the rules that keep the host from taking a tenant for its neighbour past the bridge's rules."""
    return f"""\
table arp {TABLES[bridge.kind]} {{
    chain arrivals {{
        type filter hook input priority filter; policy accept;
        {_past(bridge)}
    }}
}}
"""


def _counted() -> str:
    """Return what bounds a tenant's connections, for the chains of a table."""
    return f"""\
    set connections {{
        type ipv4_addr
        size {MOST}
        flags dynamic
    }}
    set begins {{
        type ipv4_addr
        size {MOST}
        flags dynamic,timeout
        timeout 1m
    }}
    ct timeout ended {{
        protocol tcp
        l3proto ip
        policy = {{ time_wait : {ENDED}, close : {ENDED} }}
    }}
    chain counted {{
        ip protocol tcp ct timeout set "ended"
        update @begins {{ ip saddr limit rate over {BEGIN} }} {REJECT}
        add @connections {{ ip saddr ct count over {CONNECTIONS} }} {REJECT}
    }}
"""


def _nat(bridge: Bridge) -> str:
    """Return the rules that give what leaves the host its address. With br_netfilter, what one tenant says to all the
    others (255.255.255.255, multicast) comes here as well, and stays its own.
    """
    return f"""\
table ip {TABLES[bridge.kind]} {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        ip saddr {bridge.network} oifname != "{bridge.name}" ip daddr != {bridge.network} masquerade
    }}
}}
"""


def _set(networks: Iterable[str]) -> str:
    return f"{{ {', '.join(networks)} }}"


def _port(text: str) -> list[str]:
    return text.split("/")
