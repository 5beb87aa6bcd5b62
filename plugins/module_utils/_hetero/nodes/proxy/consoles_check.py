# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consoles of a plan against each other, its PDUs and this machine: one place has one console, one by IPMI has a BMC,
and a serial device or a key is there.

site/console_lines.py checks each console by itself.
"""

from __future__ import annotations

import os
import pwd
import stat
from typing import TYPE_CHECKING, Any, Mapping

from ...core.command import command
from ...core.errors import HeteroError
from ...site.console_lines import CONSOLE_FROM, IPMI, SERIAL, SSH, ConsoleLine

if TYPE_CHECKING:
    from ...core.findings import Findings
    from .entries_check import Entry

#: Drivers of PDUs that are BMCs: their host and credentials are taken.
BMCS = ("ipmi", "redfish")
#: The account that conserver runs as; Debian's package makes it.
ACCOUNT = "conservr"
BY_ID = "a name below /dev/serial/by-id stays the same when other devices are plugged in"


def consoles(wires: Mapping[str, Entry], pdus: Mapping[str, Entry], found: Findings) -> None:
    """Check the consoles of all boards whose wiring has console_from.

    :param wires: by board id.
    :param pdus: by name.
    """
    places: dict[str, str] = {}
    for board_id, wire in sorted(wires.items()):
        line = CONSOLE_FROM.read(wire["console_from"], "", []) if wire.get("console_from") else None
        if line is None:
            continue
        thing = f"tftp_proxy_boards, board {board_id}"
        name = line.options.get("pdu") or wire.get("pdu")
        bmc = pdus.get(str(name))
        place = _bmc(str(name), bmc) if bmc is not None and line.type == IPMI else line.place
        first = places.setdefault(place, board_id) if place else board_id
        if first != board_id:
            found.defect(thing, f"its console is at {place}, as board {first}'s is", "correct one of them")
        if line.options.get("host_key") and not line.host_key:
            remedy = "give it as ssh-keyscan prints it behind the address: ssh-ed25519 AAAA…"
            found.defect(thing, "its console's host_key is no public key", remedy)
        if line.type == IPMI and (bmc is None or bmc.get("driver") not in BMCS):
            what = f"its console is by IPMI, and {name or 'no PDU'} is no BMC"
            found.defect(thing, what, f"name a PDU of driver {' or '.join(BMCS)} (console_from, pdu)")


def _bmc(name: str, bmc: Entry) -> str:
    """Return in words at which BMC a console is; its port is IPMI's where its driver is."""
    port = bmc.get("port") if bmc.get("driver") == "ipmi" else None
    return f"BMC {str(bmc.get('host') or name).lower()}{f' port {port}' if port else ''}"


def on_this_machine(wires: Mapping[str, Any], found: Findings) -> None:
    """Note the serial devices and keys of consoles that are not there, or that conserver's account cannot read.

    They stop nothing: a device may be plugged in later, and the account comes with its package.

    :param wires: by board id, as the inventory has them; what is wrong with one is said elsewhere.
    """
    for board_id, wire in sorted(wires.items()):
        given = wire.get("console_from") if isinstance(wire, dict) else None
        line = CONSOLE_FROM.read(given, "", []) if given else None
        wrong = _missing(line) if line else None
        if wrong:
            found.note(f"tftp_proxy_boards, board {board_id}", *wrong)


def _missing(line: ConsoleLine) -> tuple[str, str] | None:
    """Return (what is missing for a console, what to do), None where nothing is."""
    if line.type == SERIAL:
        device = line.options["device"]
        if not os.path.exists(device):
            return f"its console's device {device} is not there", f"plug it in, or correct device: {BY_ID}"
        if not stat.S_ISCHR(os.stat(device).st_mode):
            return f"its console's device {device} is no device", f"correct device: {BY_ID}"
    if line.type == SSH:
        key = line.options["key"]
        if not os.path.exists(key):
            return f"its console's key {key} is not there", f"put it there: install -o {ACCOUNT} -m 400 KEY {key}"
        if not _is_readable(key):
            return f"account {ACCOUNT} cannot read its console's key {key}", f"chown {ACCOUNT} {key}"
    return None


def _is_readable(path: str) -> bool:
    """Return whether conserver's account can read a file, also where there is no such account yet."""
    try:
        pwd.getpwnam(ACCOUNT)
        command(["runuser", "-u", ACCOUNT, "--", "test", "-r", path], path)
    except KeyError:
        return True
    except HeteroError:
        return False
    return True
