# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nginx by which boards load kernels: whether its port is free before the set-up, and what it serves after."""

from __future__ import annotations

import http.client
import os
from typing import TYPE_CHECKING, Any, Mapping

from ...core.command import command
from ...core.errors import HeteroError
from ...core.this_node import THIS_NODE
from ...drivers.boot.http_client import ask, get
from .machine import port_holders

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...core.findings import Findings
    from .setup_plan import Plan

#: The role's own unit, and Debian's.
UNIT, DEBIANS = "hetero-http.service", "nginx.service"
PROGRAM = "nginx"
OPTION = "tftp_proxy_boot_http_port"
#: Where a web server's sites are named, and the one that Debian's package brings.
SITES, DEBIANS_SITE = "/etc/nginx/sites-enabled", "default"
MOST = 65535
#: What a PDU that is a BMC may tell its machine to boot by (boot_once): the firmware's own HTTP boot.
UEFI_HTTP = "uefi_http"


def unserved(plan: Plan, pdus: Mapping[str, Mapping[str, Any]], found: Findings) -> None:
    """Note the BMCs whose machines are to boot by HTTP, where this node serves nothing by it."""
    names = [name for name, pdu in sorted(pdus.items()) if pdu.get("boot_once") == UEFI_HTTP]
    if names and not plan.boot_http:
        what = f"boot_once is {UEFI_HTTP}, and {THIS_NODE} serves nothing by HTTP"
        remedy = "set tftp_proxy_boot_http: true, or boot_once: pxe, unless a web server of yours gives them ipxe.efi"
        found.note(", ".join(names), what, remedy)


def nginx(plan: Plan, found: Findings) -> None:
    """Report who else holds the port; fact nginx_idle: whether Debian's own nginx is or will be there for nobody."""
    found.facts["nginx_idle"] = plan.boot_http and is_idle()
    if not plan.boot_http:
        return
    if not 0 < plan.boot_http_port <= MOST:
        found.defect(OPTION, f"{plan.boot_http_port} is no port", "give one from 1 to 65535, such as 80")
        return
    held = port_holders("tcp", plan.boot_http_port, plan.server)
    for holder in sorted(held - ({PROGRAM} if _is_active(UNIT) else set())):
        remedy = f"give {OPTION} another that is free, or stop and disable {holder}"
        found.defect(f"port {plan.boot_http_port}/tcp (HTTP)", f"is held by {holder}", remedy)


def is_idle(sites: str = SITES) -> bool:
    """Return whether nothing here uses Debian's nginx: it does not run, and knows its package's site only."""
    named = os.listdir(sites) if os.path.isdir(sites) else []
    return set(named) <= {DEBIANS_SITE} and not _is_active(DEBIANS)


def _is_active(unit: str) -> bool:
    # systemctl(1): 3 of one that does not run, 4 of one that is not known
    return command(["systemctl", "is-active", unit], ok=(0, 1, 3, 4)).strip() in ("active", "activating")


def check_http(server: str, port: int, tftp_root: str, deadline: Deadline) -> None:
    """Check that boot.ipxe comes by HTTP, whole, that the boards file and lists do not, and that nothing is written.

    :raises HeteroError: one of it is otherwise.
    """
    thing = f"HTTP on {server}:{port}"
    with open(os.path.join(tftp_root, "boot.ipxe"), "rb") as file:
        wanted = file.read()
    while True:
        try:
            if get(server, port, "boot.ipxe", deadline) == wanted:
                break
            said = f"the file that comes is not the one in {tftp_root}"
        except HeteroError as error:
            said = error.what
        if deadline.passed:
            holders = ", ".join(sorted(port_holders("tcp", port, server))) or "nobody"
            what = f"boot.ipxe cannot be fetched: {said} (port {port} is held by {holders})"
            raise HeteroError(what, thing, f"see: journalctl -u {UNIT}")
        deadline.nap()
    for name, method, verb in (
        ("tilera_boards", "GET", "is given to"),
        ("", "GET", "(the list of its files) is given to"),
        ("boot.ipxe", "PUT", "can be overwritten by"),
    ):
        if ask(server, port, name, deadline, method).status < http.client.BAD_REQUEST:
            remedy = f"stop it, and see who holds the port: ss -ltnp 'sport = :{port}'"
            raise HeteroError(f"/{name} {verb} anyone", thing, remedy)
