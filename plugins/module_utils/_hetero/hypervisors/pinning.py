# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant on a host's bridge may send, as rules of nftables: by its own MAC and IPv4 address; not to the host.

An instance's port on the bridge and its MAC follow from its address, so that the rules are the same whoever has the
address, and hold before an instance starts, after a restart inside it, and after a killed removal. What comes from
a port of ours without a pin is dropped. Which addresses there are, and when the rules are loaded, is for others.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Iterable

from ..core.command import command, ended
from ..core.deadline import Deadline
from ..core.errors import Refused

#: Kind of instance → the tables of its rules (one in each of nftables' families), and how its ports' names begin.
TABLES = {"lxc": "hetero_bridge", "kvm": "hetero_guests"}
PORTS = {"lxc": "hetc", "kvm": "hetg"}
#: Kind → the unit that loads its rules.
UNITS = {"lxc": "hetero-bridge", "kvm": "hetero-guests-bridge"}
#: How a MAC begins: two octets that nobody is given (bit "locally administered" of the first); the address follows.
MAC = (0x02, 0x68)
#: As many as fit in two octets. 65,000 take nft 0.5 s and 3 MB.
MOST = 1 << 16
#: Seconds for nft to load or look.
NFT_TIME = 60.0
#: Said, not dropped: nobody waits for what does not come.
REJECT = "reject with icmpx type admin-prohibited"


@dataclass(frozen=True)
class Bridge:
    """A bridge with tenants.

    :param kind: of its instances, a key of TABLES.
    :param ours: whether only tenants are on it, and the host is their way out.
    :param network: of the tenants.
    :param addresses: those that tenants have or may get.
    :param nat: whether they reach other networks by the host's address.
    :param open_ports: of the host, as tcp/PORT or udp/PORT.
    :param closed: networks that the host does not forward to.
    :param opened: networks or addresses that it forwards to, although they are in those.
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
    """The name of an instance's port on the bridge (12 of the 15 characters that Linux gives an interface's name)."""
    return f"{PORTS[kind]}{int(ipaddress.IPv4Address(address)):08x}"


def mac(address: str) -> str:
    octets = bytes(MAC) + ipaddress.IPv4Address(address).packed
    return ":".join(f"{octet:02x}" for octet in octets)


def pin(kind: str, address: str) -> str:
    """An element of the set `pins`."""
    return f"{port(kind, address)} . {mac(address)} . {address}"


def question(kind: str, address: str) -> str:
    """What nft is asked to see whether a pin is loaded."""
    return f"get element bridge {TABLES[kind]} pins {{ {pin(kind, address)} }}"


def must_hold(kind: str, address: str, thing: str) -> None:
    """Refused where nothing would keep an instance to its address."""
    done = ended(["nft", question(kind, address)], thing, timeout=NFT_TIME)
    if done.returncode != 0:
        what = f"its address {address} is not pinned on the bridge"
        raise Refused(what, thing, f"on the host: systemctl restart {UNITS[kind]}")


def load(bridge: Bridge) -> None:
    """Load the rules; what was loaded before holds until then, and there is no time between."""
    remedy = "see whether this kernel has nftables for bridges (CONFIG_NF_TABLES_BRIDGE)"
    command(["nft", "--file", "-"], f"rules of {bridge.name}", remedy, timeout=NFT_TIME, stdin=rules(bridge))


def loaded(bridge: Bridge, deadline: Deadline | None = None) -> bool:
    """Whether just these rules are loaded, by the mark that each of their tables has."""
    text = rules(bridge)
    timeout = deadline.left if deadline else NFT_TIME
    # without the elements, of which there may be many
    chains = ended(["nft", "--terse", "list", "chains"], bridge.name, timeout=timeout).stdout
    return chains.count(f"chain {mark(bridge)} ") == text.count(f"chain {mark(bridge)} ")


def mark(bridge: Bridge) -> str:
    """The name of an empty chain, which says what text its table was made of."""
    return f"rules_{hashlib.sha256(_body(bridge).encode()).hexdigest()[:12]}"


def rules(bridge: Bridge) -> str:
    """All rules, as one transaction of nft: loaded again, they take the place of the older ones."""
    table = TABLES[bridge.kind]
    families = ("ip", "inet", "bridge")
    away = "".join(f"table {family} {table}\ndelete table {family} {table}\n" for family in families)
    return away + _body(bridge).replace(f" {table} {{\n", f" {table} {{\n    chain {mark(bridge)} {{ }}\n")


def _body(bridge: Bridge) -> str:
    parts = [_pins(bridge), _host(bridge)]
    return "".join([*parts, _nat(bridge)] if bridge.ours and bridge.nat else parts)


def _pins(bridge: Bridge) -> str:
    """Frames as they come from a port, before the bridge learns anything of them.

    A tenant gets its address from us: who answers DHCP is an impostor. There is no IPv6 for tenants, so that nobody
    can say to be a router or a neighbour. Frames to 01-80-C2-00-00-0E (LLDP) pass by all rules; that the bridge learns
    nothing of these either is its option no_linklocal_learn.
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
        udp sport 67 drop
        iifname . ether saddr . ip saddr @pins accept
        iifname . ether saddr . arp saddr ip @pins iifname . arp saddr ether . arp saddr ip @pins accept
        drop
    }}
}}
"""


def _host(bridge: Bridge) -> str:
    """The host itself is closed but for answers, pings and what is opened; so are networks that it could forward to.

    On a bridge with others than tenants, theirs are the addresses that the bridge keeps them to.
    """
    tenants = f'iifname "{bridge.name}"'
    if not bridge.ours:
        spans = ipaddress.collapse_addresses(ipaddress.IPv4Network(address) for address in bridge.addresses)
        tenants += f" ip saddr {_set(map(str, spans))}"
    ports = "".join(f"        {protocol} dport {number} accept\n" for protocol, number in map(_port, bridge.open_ports))
    opened = f"        ip daddr {_set(bridge.opened)} accept\n" if bridge.opened else ""
    closed = f"        ip daddr {_set(bridge.closed)} {REJECT}\n" if bridge.closed else ""
    return f"""\
table inet {TABLES[bridge.kind]} {{
    chain to_host {{
        type filter hook input priority filter; policy accept;
        {tenants} jump of_tenant
    }}
    chain of_tenant {{
        ct state established,related accept
        icmp type echo-request accept
{ports}        {REJECT}
    }}
    chain through_host {{
        type filter hook forward priority filter; policy accept;
        {tenants} jump onward
    }}
    chain onward {{
        ct state established,related accept
        oifname "{bridge.name}" accept
{opened}{closed}    }}
}}
"""


def _nat(bridge: Bridge) -> str:
    return f"""\
table ip {TABLES[bridge.kind]} {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        ip saddr {bridge.network} ip daddr != {bridge.network} masquerade
    }}
}}
"""


def _set(networks: Iterable[str]) -> str:
    return f"{{ {', '.join(networks)} }}"


def _port(text: str) -> list[str]:
    return text.split("/")
