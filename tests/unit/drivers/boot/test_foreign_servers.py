# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read and said of strangers' messages on the boards' network; no network is needed for it.

Tests drivers/boot/dhcp.py.
"""

from __future__ import annotations

import random

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import (
    dhcp,
    foreign_servers,
    neighbours,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    OTHER_ADDRESS,
    OTHER_DHCP,
)
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import BOARDS, EVIL

BOARD = BOARDS[1]["mac"]


def test_strangers_are_named_once_with_what_is_known_of_them(monkeypatch):
    """A name without a MAC sends people through the cupboard of switches; the same name twice, twice."""
    monkeypatch.setattr(neighbours, "dhcp_servers", lambda interface, mac: {"10.0.2.66": EVIL})
    monkeypatch.setattr(neighbours, "holders", lambda interface, address: set())
    seen = [(OTHER_DHCP, "10.0.2.66"), (OTHER_DHCP, "10.0.2.67"), (OTHER_ADDRESS, EVIL)]
    assert foreign_servers.named("10.0.2.254", "eth0", BOARD, seen) == [
        f"another DHCP server answers boards: 10.0.2.66 ({EVIL})",
        "another DHCP server answers boards: 10.0.2.67 (its MAC is not known)",
        f"another machine says that it has the proxy's address 10.0.2.254: {EVIL}",
    ]
    assert foreign_servers.named("10.0.2.254", "eth0", None, []) == [], (
        "where DHCP is the site's, it has its own servers"
    )


def test_no_message_breaks_the_reader():
    """One odd packet of a neighbour would end the watcher, and with it every boot."""
    noise = random.Random(1)
    whole = dhcp.discover(BOARD, b"abcd")
    assert dhcp.read(whole) == dhcp.Message(1, b"abcd", BOARD, "0.0.0.0", dhcp.DISCOVER, "")
    for _try in range(2000):
        data = bytearray(whole + bytes(noise.randrange(20)))
        for _byte in range(noise.randrange(6)):
            data[noise.randrange(236, len(data))] = noise.randrange(256)
        dhcp.read(bytes(data[: noise.randrange(len(data))]))
