# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the site's people to what a source did not tell, in a file of theirs: `answers.yml`.

It is written once, with a line for each question. Later questions are added by a word only, and never to a file that
people wrote themselves. It holds no secrets.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Sequence

from ..boards.power.pdu_names import has_one_machine
from ..core.errors import BadInput
from ..core.plays import play
from ..core.spelling import instead
from ..core.typed_keys import shown
from ..nodes.proxy.words_check import reads
from .documents import yaml_of
from .source_site import BOARD_KEYS, PDU_KEYS, Board, Pdu, Site
from .yaml_lines import comment, flow, word

#: What is asked of the proxy node, which no source knows.
PROXY_KEYS = ("name", "server")
#: A board that is none of ours.
SKIP = "skip"
KEYS = {"proxy": PROXY_KEYS, "boards": (SKIP, *BOARD_KEYS), "pdus": ("username", *PDU_KEYS)}
#: Words that are answered in a vault.
SECRETS = ("password", "community", "privacy_password", "token", "secret")
#: A name of a host in an inventory.
HOST = re.compile(r"[A-Za-z0-9][\w.-]{0,62}", re.ASCII)
#: How the file begins where it was not written by hand.
OURS = "# Asked by "
HEAD = """\
# Asked by {play}: write each answer in place of null, then run it again with replace=true.
# A board that is not to be one of this collection's: skip: true. No passwords here, they belong into a vault.
"""


@dataclass(frozen=True)
class Question:
    """What is not known.

    :param part: one of KEYS; `thing` is the name in it, empty for the proxy node.
    :param hint: what is to be given; `reason` is why it is not known, where that is more than that nobody says it.
    :param needed: whether the thing cannot be written down without it.
    """

    part: str
    thing: str
    key: str
    hint: str
    reason: str = ""
    needed: bool = True

    @property
    def why(self) -> str:
        return f"{self.hint} ({self.reason})" if self.reason else self.hint

    @property
    def place(self) -> str:
        """Return where in the file the answer is written."""
        return ": ".join(one for one in (self.part, self.thing, self.key) if one)


@dataclass
class Answers:
    """What the file says: {part: {thing: {key: value}}}; the proxy node is the thing "" of its part."""

    said: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {part: {} for part in KEYS})

    @property
    def proxy(self) -> dict[str, Any]:
        return {key: value for key, value in self.said["proxy"].get("", {}).items() if value is not None}


def parse(text: str, source: str) -> Answers:
    """Return the answers of a file's text; raise BadInput where it is none."""
    data = yaml_of(text, source) or {}
    answers = Answers()
    if not isinstance(data, dict):
        raise BadInput("holds no answers", source, f"begin it with {', '.join(KEYS)}")
    for part, things in data.items():
        if part not in KEYS:
            raise BadInput(f"has an unknown key {shown(part)}", source, instead(part, KEYS))
        given = {"": things} if part == "proxy" else things
        for thing, one in _mapping(given, f"{part}", source).items():
            said = _mapping(one, f"{part}: {thing}", source)
            answers.said[part][str(thing)] = {key: _answer(part, thing, key, said[key], source) for key in said}
    return answers


def _mapping(value: Any, place: str, source: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"{place} is {shown(value)}", source, "give keys and values there")
    return value


def _answer(part: str, thing: object, key: object, value: Any, source: str) -> Any:
    place = f"{source}, {part}: {thing}: {key}" if thing else f"{source}, {part}: {key}"
    if key in SECRETS:
        raise BadInput("is a secret, which this file is not for", place, "take it out, and put it into a vault")
    if key not in KEYS[part]:
        raise BadInput("is no word for an answer", place, instead(key, KEYS[part]))
    if part == "proxy" and value is not None and not _right(str(key), value):
        wanted = "a host's name in the inventory" if key == "name" else "an IPv4 address"
        raise BadInput(f"is {shown(value)}", place, f"give {wanted}")
    if key == SKIP and value not in (None, True, False):
        raise BadInput(f"is {shown(value)}", place, "give true or false")
    return value


def _right(key: str, value: Any) -> bool:
    if key == "name":
        return isinstance(value, str) and bool(HOST.fullmatch(value))
    try:
        return isinstance(value, str) and str(ipaddress.IPv4Address(value)) == value
    except ValueError:
        return False


def apply(answers: Answers, site: Site, source: str) -> Site:
    """Return the site with the answers in place of what the source says; boards that are skipped are left out."""
    boards = answers.said["boards"]
    for board in site.boards:
        for key, value in boards.get(board.name, {}).items():
            if key != SKIP:
                board.take(key, value, f"{source}, boards: {board.name}")
    for board in site.boards:
        if board.said.get("pdu"):
            site.pdu(board.said["pdu"], board.where)
    for name, said in answers.said["pdus"].items():
        if said.get("driver") is not None:
            site.pdu(name, f"{source}, pdus: {name}").answered = True
        if name in site.pdus:
            _replace_driver(site, site.pdus[name], said, boards)
        for key, value in said.items() if name in site.pdus else ():
            site.pdus[name].take(key, value, f"{source}, pdus: {name}")
    for pdu in site.pdus.values():
        if pdu.said.get("driver") == "uhubctl" and pdu.said.get("host") in answers.proxy.values():
            del pdu.said["host"]  # which is the proxy node itself
    known = {"boards": {board.name for board in site.boards}, "pdus": set(site.pdus)}
    for part, names in known.items():
        lost = [thing for thing in answers.said[part] if thing not in names]
        way = "; give its driver to have it written down" if part == "pdus" else ""
        site.notes += [f"{source}: {part}: {thing}: is none that the source has any more{way}" for thing in lost]
    kept = [board for board in site.boards if not boards.get(board.name, {}).get(SKIP)]
    return Site(kept, site.pdus, site.notes, _others(site.boards, kept, boards))


def _others(all_boards: Sequence[Board], kept: Sequence[Board], said: Mapping[str, Mapping[str, Any]]) -> list[Board]:
    """Return the boards that are skipped and are machines of their own: the source gives their outlets to no others.

    A board that nobody has may be another entry of a board that stays: it has the same MAC, or people answered that the
    other board has its outlet.
    """
    macs = {board.said.get("mac") for board in kept} - {None}
    given = {board.fed for board in kept if said.get(board.name, {}).get("outlet") is not None}
    found = []
    for board in all_boards:
        if board not in kept and (board.held or not (board.said.get("mac") in macs or board.fed in given)):
            board.where += ", which is skipped"
            found.append(board)
    return found


def _replace_driver(site: Site, pdu: Pdu, said: Mapping[str, Any], boards: Mapping[str, Mapping[str, Any]]) -> None:
    """Take out what the source said for another driver than the one of the answers.

    :param said: the answers of the PDU.
    :param boards: those of all boards.
    """
    driver, before = said.get("driver"), pdu.said.get("driver", pdu.meant)
    if driver in (None, pdu.said.get("driver")):
        return
    was = {**pdu.said, "driver": before}
    by_ipmi = has_one_machine(was) and has_one_machine({**was, **said})
    # at another protocol's port something else may answer
    if before not in ("", driver) and "port" in pdu.said and not by_ipmi:
        pdu.ask("port", f"{pdu.where}: {pdu.said['port']} is that of driver {before}: give the one of {driver}")
    for key in [key for key in (*pdu.said, *pdu.asked) if not reads(driver, key)]:
        pdu.said.pop(key, None)
        pdu.asked.pop(key, None)
    fed = [board for board in site.boards if board.said.get("pdu") == pdu.name and driver == "redfish"]
    for board in fed:  # whose outlets have names of their own
        if boards.get(board.name, {}).get("outlet") is None:
            board.ask("outlet", f"{board.where}: the driver of {pdu.name} is redfish now: give the Id of its system")


def render(answers: Answers, questions: Sequence[Question]) -> str:
    """Return the text of the file: what was answered, and null for what is asked."""
    asked = {(one.part, one.thing, one.key): one.why for one in questions}
    merged = {part: {thing: dict(said) for thing, said in things.items()} for part, things in answers.said.items()}
    for part, thing, key in asked:
        merged[part].setdefault(thing, {}).setdefault(key, None)
    lines = [HEAD.format(play=play("move_in"))]
    for part, things in merged.items():
        if things:
            lines += [f"{part}:\n", *_part(part, things, asked)]
    return "".join(lines)


def _part(
    part: str, things: Mapping[str, Mapping[str, Any]], asked: Mapping[tuple[str, str, str], str]
) -> Iterator[str]:
    for thing, said in things.items():
        indent = "  "
        if thing:
            indent = "    "
            yield f"  {word(thing)}:\n" if said else f"  {word(thing)}: {{}}\n"
        for key, value in said.items():
            why = asked.get((part, thing, key))
            yield f"{indent}{key}: {flow(value)}{comment(why) if why else ''}\n"
