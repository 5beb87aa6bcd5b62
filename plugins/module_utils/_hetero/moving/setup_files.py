# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a set-up of a proxy node reads, made of a site: the boards file, the wiring, an inventory.

The product's own readers look at all of them before anything is written. What they do not take becomes a question where
one board or PDU is at fault.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any, Iterable, Mapping, Sequence

from ..boards.power.pdu_names import devices, has_one_machine, plug
from ..core.errors import HeteroError
from ..core.findings import Findings
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..nodes.proxy import preflight
from ..nodes.proxy.setup_plan import Plan
from ..site import boards_file
from .answers import Question
from .documents import yaml_of
from .questions import TILERA
from .source_site import CPU_INFO, OWN_CONSOLE, PDU_KEYS, WIRING, Board, Pdu, Site
from .variables import OWN
from .yaml_lines import Template, comment, flow, for_ansible

#: What says that a board's line needs for Nova only, as the guide to the first board has it.
NOVA: dict[str, Any] = dict(memory_mb_used=0, local_gb_used=0, hypervisor_type="none", hypervisor_version="1")
#: A place where no proxy node keeps anything: what this machine has is not asked.
NOWHERE = "/nonexistent/hetero"
#: What a check says of a program or a certificate on the proxy node, which this machine is not.
ELSEWHERE = re.compile(r"program \S+ (?:is not installed|cannot be run)|its tls_ca .* is not there")
#: How a check begins that says what is wrong with console_from.
OF_CONSOLE = "its console is "
#: PDU's driver → its secrets, of which it has one in any case. Other drivers have one where the source has.
LOGINS: dict[str, tuple[str, ...]] = {
    "snmp": ("community",),
    **dict.fromkeys(("apc", "fence", "ipmi", "redfish"), ("password",)),
}
#: All that a PDU may need.
SECRETS = ("password", "privacy_password", "community")
#: How fence agents are called that speak SNMP, versions 1 and 2c of which know a community alone.
BY_SNMP = "_snmp"
#: What privacy_protocol is for an SNMP user without privacy; drivers take it from a password that is not there.
NO_PRIVACY = "none"
#: What tells whether people changed the lines below it.
MARK = "# If you change the lines below, they are not written over (sum {})\n"
#: All that stands above the lines that it tells of.
HEAD = re.compile(r"#[^\n]*\n#[^\n]*\(sum ([0-9a-f]{16})\)\n")
MADE = "Written by {play} from {source}; {boards}"


class Numbered:
    """Boards that can be written down, each with its number."""

    def __init__(self, boards: Sequence[Board], before: Iterable[int]) -> None:
        """Give each board without a number the next one that no other has.

        :param before: numbers that boards had, which are given to no other one.
        """
        self.boards: list[tuple[int, Board]] = []
        taken = {*before, *(board.said["id"] for board in boards if "id" in board.said)}
        following = 0
        for board in boards:
            number = board.said.get("id")
            if number is None:
                while following in taken:
                    following += 1
                number = following
                taken.add(number)
            self.boards.append((number, board))
        self.boards.sort(key=lambda one: one[0])

    def lines(self) -> list[boards_file.Board]:
        """Return what the boards file is rendered from."""
        return [_line(number, board) for number, board in self.boards]


def _line(number: int, board: Board) -> boards_file.Board:
    said, there = board.said, board.before
    columns = {key: said[key] for key in ("ip", "mac", "vcpus", "memory_mb", "local_gb")}
    # what the boards file has and no source says stays: it is what flavors ask for
    cpu_info = {**(there.cpu_info if there else {}), **{key: said[key] for key in CPU_INFO if key in said}}
    nova = {key: getattr(there, key) for key in NOVA} if there else NOVA
    if str(cpu_info.get("vendor")).lower() == TILERA:  # which chooses a driver
        cpu_info["vendor"] = TILERA
    return boards_file.Board(id=number, cpu_info=cpu_info, **columns, **nova)


def wiring(numbered: Numbered, pdus: Mapping[str, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return tftp_proxy_boards: of each board what is known and fits together."""
    wires: dict[int, dict[str, Any]] = {}
    for number, board in numbered.boards:
        wire = {key: board.said[key] for key in WIRING if key in board.said}
        if wire.get("pdu") not in pdus or "outlet" not in wire:
            wire.pop("pdu", None)
            wire.pop("outlet", None)
        elif re.fullmatch(r"[1-9][0-9]{0,8}", str(wire["outlet"])):
            wire["outlet"] = int(wire["outlet"])
        wires[number] = wire
    return wires


def settings(pdu: Pdu) -> dict[str, Any]:
    """Return a PDU's entry of tftp_proxy_pdus."""
    left_out = {"username", *(("privacy_protocol",) if _is_open(pdu) else ())}
    return {key: value for key, value in pdu.said.items() if key not in left_out and value is not None}


def _is_open(pdu: Pdu) -> bool:
    """Return whether it is said that an SNMP user has no privacy."""
    return str(pdu.said.get("privacy_protocol") or "").lower() == NO_PRIVACY


class Vault:
    """The secrets that PDUs need, by the names of variables under which a vault is to have them.

    A name is its PDU's alone, whichever others there are: what is in a vault already would be sent to another device.

    :param pdus: the names of all PDUs.
    """

    def __init__(self, pdus: Iterable[str]) -> None:
        self.names: list[str] = []
        said = Counter(_variable(pdu, secret) for pdu in pdus for secret in SECRETS)
        self._shared = {name for name, times in said.items() if times > 1}

    def credentials(self, pdu: Pdu) -> dict[str, Any]:
        """Return a PDU's entry of tftp_proxy_pdu_credentials, whose secrets are variables; empty for none."""
        driver = str(pdu.said.get("driver"))
        secrets: Sequence[str] = LOGINS.get(driver, ("password",) if pdu.login or "username" in pdu.said else ())
        if str(pdu.said.get("snmp_version")) == "3":
            if driver == "snmp":
                secrets = ("password",) if _is_open(pdu) else ("password", "privacy_password")
        elif driver == "fence" and str(pdu.said.get("agent")).endswith(BY_SNMP):
            secrets = ("community",)
        # a community stands by itself
        has_user = "username" in pdu.said and "community" not in secrets
        user = {"username": pdu.said["username"]} if has_user else {}
        return {**user, **{secret: self._variable(pdu.name, secret) for secret in secrets}} if secrets else {}

    def _variable(self, pdu: str, secret: str) -> str:
        name = _variable(pdu, secret)
        if name in self._shared:
            name = f"{name}_{hashlib.sha256(pdu.encode()).hexdigest()[:8]}"
        self.names.append(name)
        return Template(f"{{{{ {name} }}}}")


def _variable(pdu: str, secret: str) -> str:
    return f"vaulted_{re.sub(r'[^A-Za-z0-9]', '_', pdu).lower()}_{secret}"


def faulty_pdus(pdus: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Return a question for each thing that the check before a set-up says of a PDU."""
    found = [(name, defect) for name, one in pdus.items() for defect in _defects({}, {name: one}, [])]
    return [_question("pdus", name, defect, _key_of(defect, PDU_KEYS, "driver")) for name, defect in found]


def faulty_boards(numbered: Numbered, pdus: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Return a question for each thing that the check says of a board's wiring, and take that out of what is known."""
    found = []
    wires = wiring(numbered, pdus)
    for (number, board), line in zip(numbered.boards, numbered.lines()):
        used = {name: one for name, one in pdus.items() if name == wires[number].get("pdu")}
        for defect in _defects({number: wires[number]}, used, [line]):
            key = _key_of(defect, WIRING, "outlet")
            board.said.pop(key, None)
            found.append(_question("boards", board.name, defect, key))
    return found


def shared_outlets(site: Site, numbered: Numbered, pdus: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Return a question for each board whose outlet is another's, too, by a PDU that has two names.

    A BMC that is asked by IPMI has one machine, whatever that is called by another of its names. The other one may be a
    machine that somebody has, which is not wired.
    """
    wires = wiring(numbered, pdus)
    wired = [(wires[number]["pdu"], board) for number, board in numbered.boards if "pdu" in wires[number]]
    unwired = [board for board in [*site.boards, *site.others] if "pdu" not in board.said]
    held = [(board.held, board) for board in unwired if board.held]
    known = {**{pdu: settings(site.pdus[pdu]) for pdu, _board in held}, **pdus}
    held = [(pdu, board) for pdu, board in held if "outlet" in board.said or _may_have_one_machine(known[pdu])]
    names = devices(known)
    # who needs no Id of a system by Redfish has the only one of the BMC
    alone = [pdu for pdu, board in held if "outlet" not in board.said]
    by_ipmi = {names.get(pdu, pdu) for pdu, _board in [*wired, *held] if has_one_machine(known[pdu])}
    by_one = by_ipmi | {names.get(pdu, pdu) for pdu in alone}
    users: dict[tuple[Any, str], list[Board]] = {}
    for pdu, board in [*wired, *held]:
        device = names.get(pdu, pdu)
        users.setdefault((device, "" if device in by_one else plug(board.said["outlet"])), []).append(board)
    found = []
    for (device, outlet), boards in users.items():
        how = "one machine by IPMI" if device in by_ipmi else "one machine where no Id of a system is needed"
        one = "one outlet would feed" if outlet else f"one BMC, which has {how}, would feed"
        said = " and ".join(f"{board.name} ({_told_outlet(board)})" for board in boards)
        for board in [board for board in boards if "pdu" in board.said] if boards[1:] else ():
            board.said.pop("outlet")
            found.append(Question("boards", board.name, "outlet", "which outlet feeds it", f"{one} {said}", False))
    return found


def _may_have_one_machine(settings: Mapping[str, Any]) -> bool:
    return settings.get("driver") == "redfish" or has_one_machine(settings)


def _told_outlet(board: Board) -> str:
    outlet, pdu = board.said.get("outlet"), board.said.get("pdu", board.held)
    return f"outlet {outlet} of {pdu}" if outlet else f"by {pdu}"


def _key_of(defect: HeteroError, keys: Sequence[str], usual: str) -> str:
    """Return which key a defect is about: the one that its place ends with, or else its words have."""
    if defect.what.startswith(OF_CONSOLE) and OWN_CONSOLE in keys:
        return OWN_CONSOLE
    last = str(defect.thing).rpartition(".")[2]
    return last if last in keys else next((key for key in keys if re.search(rf"\b{key}\b", defect.what)), usual)


def _question(part: str, thing: str, defect: HeteroError, key: str) -> Question:
    # this machine is not the proxy node
    why = f"{defect.what}: {defect.remedy}".replace(THIS_NODE, "the proxy node")
    return Question(part, thing, key, f"its {key}", why, needed=part == "pdus")


def check(lines: Sequence[boards_file.Board], wires: Mapping[int, Any], pdus: Mapping[str, Any]) -> None:
    """Raise HeteroError where the product's readers do not take what is to be written."""
    boards_file.parse(boards_file.render(lines))
    wrong = _defects(wires, pdus, lines)
    if wrong:
        said = "; ".join(map(str, wrong))
        what = f"would not be taken by the set-up, and nothing was written: {said}"
        raise HeteroError(what, "what was found", "give it by answers.yml otherwise, and report it")


def _defects(
    wires: Mapping[int, Any], pdus: Mapping[str, Any], lines: Sequence[boards_file.Board]
) -> list[HeteroError]:
    plan = Plan(server="", config=NOWHERE, state_folder=NOWHERE, pdus=dict(pdus))
    plan.wiring = {str(number): wire for number, wire in wires.items()}
    # which RAM images there are is said in a note
    plan.ram_images = {line.arch: "any" for line in lines if line.arch}
    found = Findings()
    preflight.wiring(plan, lines, found)
    return [defect for defect in found.defects if not ELSEWHERE.match(defect.what)]


def wiring_text(
    source: str, numbered: Numbered, wires: Mapping[int, Any], pdus: Mapping[str, Any], credentials: Mapping[str, Any]
) -> str:
    """Return the text of the proxy node's host variables."""
    named = dict(numbered.boards)
    lines = ["tftp_proxy_boards_file: files/boards\n"]
    # an empty one would count more than PDUs that people have in group_vars
    lines += ["tftp_proxy_pdus:\n"] if pdus else []
    lines += [f"  {flow(name)}: {for_ansible(one)}\n" for name, one in pdus.items()]
    if credentials:
        lines += ["# their secrets are in a vault, under these names\n", "tftp_proxy_pdu_credentials:\n"]
        lines += [f"  {flow(name)}: {for_ansible(one)}\n" for name, one in credentials.items()]
    lines += boards_lines(wires, {number: f"{board.name} ({board.where})" for number, board in named.items()})
    text = "".join(lines)
    return f"{_made(source, f'variables of your own belong in {OWN}')}{MARK.format(_sum(text))}{text}"


def is_changed(text: str) -> bool:
    """Return whether people changed host variables since they were written."""
    head = HEAD.match(text)
    return not head or head[1] != _sum(text[head.end() :])


def lacking(there: str, text: str, exactly: bool) -> list[str]:
    """Return the entries of host variables that others, which people changed, have not or have otherwise.

    :param exactly: whether an entry that says more there is another one.
    """
    wanted = yaml_of(text, "")
    try:
        has = yaml_of(there, "")
    except HeteroError:  # such as a value in a vault
        has = None
    has = has if isinstance(has, dict) else {}
    found = []
    for variable, entries in wanted.items():
        one = has.get(variable)
        if not isinstance(entries, dict):
            found += [f"{variable}: {flow(entries)}"] if one != entries else []
            continue
        known = {str(key): value for key, value in one.items()} if isinstance(one, dict) else {}
        for key, entry in entries.items():
            other = known.get(str(key))
            has_more = not exactly and isinstance(other, dict) and entry.items() <= other.items()
            found += [] if has_more or other == entry else [f"{variable}: {key}: {flow(entry)}"]
    return found


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def boards_lines(wires: Mapping[int, Any], comments: Mapping[int, str]) -> list[str]:
    """Return the lines of tftp_proxy_boards."""
    lines = ["tftp_proxy_boards:" + ("\n" if wires else " {}\n")]
    for number, wire in wires.items():
        lines.append(f"  {number}: {for_ansible(wire)}{comment(comments[number]) if number in comments else ''}\n")
    return lines


def inventory_text(source: str, name: str, server: str) -> str:
    """Return the text of an inventory with the proxy node."""
    host = f"    {flow(name)}:\n      ansible_host: {server}\n      tftp_proxy_server: {server}\n"
    return f"{_made(source, f'host_vars/{name}.yml has the wiring')}proxies:\n  hosts:\n{host}"


def _made(source: str, more: str) -> str:
    return comment(MADE.format(play=play("move_in"), source=source, boards=more)).strip() + "\n"
