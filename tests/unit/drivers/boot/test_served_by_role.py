# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role tells the servers of the boards' network, where no fewer words would do."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import rendered

#: More than dnsmasq's own limit of leases (1000).
MANY = [
    dict(
        id=number,
        name=f"board{number}",
        ip=f"10.1.{number // 250}.{number % 250 + 1}",
        mac=f"00:1a:ca:00:{number // 256:02x}:{number % 256:02x}",
        near=True,
    )
    for number in range(1500)
]


def test_tftp_serves_its_own_folder_and_nothing_that_lies_elsewhere():
    """Lost: to any board, each file of the proxy to which a link leads: in.tftpd would not change its root."""
    (line,) = [line for line in rendered("xinetd-tftp.j2").splitlines() if line.split()[:1] == ["server_args"]]
    words = line.split()[2:]
    assert "--secure" in words
    assert "--create" not in words
    assert [word for word in words if word.startswith("/")] == ["/etc/hetero/tftp.map", "/tftpboot"]


def test_each_board_has_an_address_of_its_own_and_strangers_have_none():
    """Lost: a board's address, to whatever asks first; and the boards after the thousandth, to dnsmasq's own limit."""
    lines = rendered("dnsmasq.conf.j2", MANY).splitlines()
    assert [line for line in lines if line.startswith("dhcp-range=")] == [
        f"dhcp-range=tag:{board['name']},{board['ip']},{board['ip']},255.255.255.0,1h" for board in MANY
    ]
    assert "dhcp-lease-max=1500" in lines
    assert "dhcp-hostsfile=/etc/hetero/dhcp-hosts" in lines
