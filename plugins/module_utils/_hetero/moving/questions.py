# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a question of each value that nobody said, and of each place that two boards have and only one can have.

Nothing is guessed.
"""

from __future__ import annotations

from typing import Callable, Iterator, Sequence

from ..core.typed_keys import shown
from ..drivers.boot.registry import DRIVERS as BOOT_DRIVERS
from ..drivers.power.registry import DRIVERS as POWER_DRIVERS
from .answers import Answers, Question
from .source_site import NEEDED, Board, Pdu, Site

#: What is to be written where the source says nothing of a board.
HINTS = {
    "mac": "the MAC address that it boots by",
    "ip": "the IPv4 address that it is to have",
    "arch": "its architecture, such as x86_64 or aarch64",
    "vcpus": "how many CPUs it has",
    "memory_mb": "its memory in MiB",
    "local_gb": "the size of its disks in GiB, 0 for none",
    "features": "what flavors ask for, such as its geometry, 8x8Grid",
    "id": "its number, which no other board has",
    "pdu": "which PDU feeds it; without one it cannot be booted",
    "outlet": "which outlet feeds it",
    "driver": f"how it boots: {', '.join(name for name in BOOT_DRIVERS if name != 'fake')}",
    "disk": "/dev/sda or the like, which is wiped when it is given back, or none",
    "console": "the log on the proxy node that its console is written to",
    "console_command": "the command on the proxy node that attaches to its console",
    "console_from": "where conserver on the proxy node reaches its console, as {type: telnet, host: HOST, port: PORT}",
}
PROXY = {"name": "what the proxy node is called in the inventory", "server": "its IPv4 address that boards ask"}
DRIVERS = ", ".join(name for name in POWER_DRIVERS if name != "fake")
#: The vendor of boards of which flavors ask a geometry, and that boot by a driver of their own.
TILERA = "tilera"
#: What may be in one board's line only.
UNIQUE = ("id", "mac", "ip")
#: Architectures of machines whose firmware boots by PXE where nobody says otherwise.
PXE = ("x86_64", "i686")


def of_site(site: Site, answers: Answers) -> list[Question]:
    """Return all questions; what is in conflict is taken out of the boards, so that neither has it."""
    found = [Question("proxy", "", key, PROXY[key]) for key in PROXY if key not in answers.proxy]
    _conflicts(site, answers.proxy.get("server"))
    for board in site.boards:
        found += _of_board(board)
    for name in site.used():
        found += _of_pdu(site.pdus[name])
    return found


def _conflicts(site: Site, server: str | None) -> None:
    """Ask of two boards what only one can have; neither keeps it.

    :param server: the proxy node's address, which no board has.
    """
    for board in site.boards:
        if server and board.said.get("ip") == server:
            board.ask("ip", f"{board.where}: {server} is the proxy node's own")
    for key in UNIQUE:
        _ask_all(site.boards, lambda board, key=key: board.said.get(key), (key,))  # type: ignore[misc]
    _ask_all([*site.boards, *site.others], lambda board: board.fed, ("outlet",))
    _ask_all(site.boards, lambda board: board.console_place, ("console_from",))


def distinct(site: Site) -> None:
    """Give boards of the same name names of their own, so that an answer is for one of them."""
    seen: dict[str, int] = {}
    for board in site.boards:
        number = seen[board.name] = seen.get(board.name, 0) + 1
        if number > 1:
            name, board.name = board.name, f"{board.name} ({number})"
            site.notes.append(f"{board.where}: another one is called {name}, too: it is {board.name} here")


def _ask_all(boards: Sequence[Board], value_of: Callable[[Board], object], keys: tuple[str, ...]) -> None:
    users: dict[object, list[Board]] = {}
    for board in boards:
        value = value_of(board)
        if value is not None:
            users.setdefault(value, []).append(board)
    for value, alike in users.items():
        if len(alike) == 1:
            continue
        said = f"outlet {value[1]} of {value[0]}" if isinstance(value, tuple) else shown(value)
        names = " and ".join(f"{board.name} ({board.where})" for board in alike)
        for board in alike:
            for key in keys:
                board.ask(key, f"{said} is said of {names}")


def _of_board(board: Board) -> Iterator[Question]:
    wanted: dict[str, bool] = {key: True for key in NEEDED if key not in board.said}
    if board.said.get("local_gb") and "disk" not in board.said:
        wanted["disk"] = False
    if "pdu" not in board.said:
        wanted["pdu"] = False
    if "pdu" not in board.said or "outlet" not in board.said:
        wanted["outlet"] = False
    has = {**(board.before.cpu_info if board.before else {}), **board.said}
    if str(has.get("vendor")).lower() == TILERA:
        wanted.update({} if has.get("features") else {"features": False})
    elif "driver" not in board.said:
        wanted.update({"driver": False} if board.said.get("arch", PXE[0]) not in PXE else {})
    wanted.update({key: key in NEEDED or key == "id" for key in board.asked if key not in wanted and key in HINTS})
    for key, needed in wanted.items():
        yield Question("boards", board.name, key, HINTS[key], board.asked.get(key, ""), needed)


def _of_pdu(pdu: Pdu) -> Iterator[Question]:
    hints = {"driver": f"what speaks to it: {DRIVERS}", "host": "its address", "username": "its user name"}
    hints.update(agent="its fence agent", script="the script on the proxy node that switches it", api="its interface")
    driver = pdu.said.get("driver")
    wanted = ["driver"] if driver is None else []
    if "host" not in pdu.said and (driver is None or driver not in POWER_DRIVERS or POWER_DRIVERS[driver].needs_host):
        wanted.append("host")
    needs = {"fence": "agent", "command": "script", "http": "api"}.get(str(driver))
    if needs and needs not in pdu.said and "api_table" not in pdu.said:
        wanted.append(needs)
    if driver == "redfish" and "username" not in pdu.said:  # a password alone is refused
        wanted.append("username")
    wanted += [key for key in pdu.asked if key not in wanted]
    for key in wanted:
        yield Question("pdus", pdu.name, key, hints.get(key, f"its {key}"), pdu.asked.get(key, ""))
    if driver in ("apc", "fence", "ipmi") and not {"username"} & {*pdu.said, *wanted}:
        yield Question("pdus", pdu.name, "username", hints["username"], needed=False)
    if driver == "redfish" and pdu.said.get("tls") is not False and not {"tls_ca", "tls_verify"} & {*pdu.said, *wanted}:
        hint = "who signed its certificate, a file on the proxy node (tls_verify: false checks none)"
        yield Question("pdus", pdu.name, "tls_ca", hint, needed=False)
