# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which routers a proxy node learned of on the boards' network, where each board can say that it is one.

The role's packet filter keeps later words of routers out; what was learned before may be the site's, and nothing
removes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...core.command import command

if TYPE_CHECKING:
    from ...core.findings import Findings


def learned(interface: str, heard: bool, found: Findings) -> None:
    """Report default routes that somebody on `interface` gave this machine.

    :param heard: whether routers are to be heard there after the set-up, too.
    """
    if heard:
        return
    # kernel, systemd-networkd and NetworkManager mark what they have from a router alike (RTPROT_RA, linux/rtnetlink.h)
    routes = ["ip", "-j", "-6", "route", "show", "default", "proto", "ra"]
    for route in json.loads(command(routes, remedy="install iproute2") or "[]"):
        for hop in route.get("nexthops", [route]):
            gateway = hop.get("gateway")
            if not gateway or hop.get("dev") != interface:
                continue
            found.note(
                interface,
                f"its IPv6 default route goes to {gateway}, because that machine said it is a router, as each board"
                " can; after the set-up nobody can say so, and the route ends with its time",
                f"a router of yours: set the route yourself, or tftp_proxy_boards_interface_ra: true;"
                f" no router: ip -6 route del default via {gateway} dev {interface} proto ra",
            )
