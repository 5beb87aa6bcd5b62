# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a site has to the files of its proxy node: a source is read, answers are added, the rest is asked.

An existing file is changed only by an explicit word; nothing is written where one file would need it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Mapping

from ..core.changes import Change
from ..core.errors import BadInput, Refused, naming
from ..core.printable import brief
from ..files.whole_file import as_before, write_whole
from ..site import boards_file
from . import answers as answers_file
from . import existing_boards, variables
from . import questions as asking
from .answers import Answers, Question
from .documents import Asked, named, text_of
from .existing_boards import ExistingBoards
from .setup_files import (
    Numbered,
    Vault,
    check,
    faulty_boards,
    faulty_pdus,
    inventory_text,
    is_changed,
    lacking,
    settings,
    shared_outlets,
    wiring,
    wiring_text,
)
from .source_site import Site
from .sources.registry import SOURCES
from .variables import OWN

ANSWERS, BOARDS, INVENTORY = "answers.yml", os.path.join("files", "boards"), "inventory.yml"
#: Most characters of a name. A key of YAML has 1024 at most, and six may stand for one of the name.
LONGEST_NAME = 150
#: How a secret gets into a vault without a line end and without being shown.
ENCRYPT = "read -rsp '{name}: ' it && printf %s \"$it\" | ansible-vault encrypt_string --stdin-name {name} >> {own}"


@dataclass
class Moved:
    """What comes of a source.

    :param files: {path below the folder: text}.
    :param boards: {number: name} of boards that are written down.
    :param vault: variables that a vault is to have.
    :param host: the proxy node's name, empty where it is not known.
    :param passed_on: boards with numbers that others had.
    """

    files: dict[str, str] = field(default_factory=dict)
    boards: dict[int, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    vault: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    host: str = ""
    passed_on: list[str] = field(default_factory=list)


def move_in(params: Mapping[str, Any], asked: Asked, check_mode: bool) -> dict[str, Any]:
    """Do the work of module site_files and return its result."""
    folder = params["folder"]
    source = SOURCES[params["source"]]
    if not (asked.paths if source.needs == "src" else asked.url):
        raise BadInput(f"needs {source.needs}", f"source {params['source']}", f"say where it is: {source.needs}=…")
    site = source.read(asked)
    if not site.boards:
        remedy = "check what it was exported from, and its filters"
        raise BadInput("has no boards", f"source {params['source']}", remedy)
    moved = moved_in(site, _where(params), folder)
    change = Change(check_mode)
    held = _differing(moved, folder, change, params["replace"])
    if held and not params["replace"]:
        said = f"{', '.join(held)} {'is' if len(held) == 1 else 'are'} there with another content"
        remedy = "--check --diff shows it; replace=true writes it anew, or another folder=FOLDER keeps it"
        if not check_mode:
            raise Refused(f"{said}; nothing was written", folder, remedy)
        moved.notes.append(f"{said}: replace=true writes it anew")
    if not check_mode:
        _write(moved, folder)
    return {**change.result, **_told(moved, folder)}


def _where(params: Mapping[str, Any]) -> str:
    names = ", ".join(map(named, params["src"] or ())) or str(params["url"]).partition("?")[0]
    return f"{params['source']} {names}"


def moved_in(site: Site, source: str, folder: str) -> Moved:
    """Return the files, questions and notes of a site, with the answers and numbers that the folder has."""
    asking.distinct(site)
    path = os.path.join(folder, ANSWERS)
    answers = answers_file.parse(text_of(path), path) if os.path.exists(path) else Answers()
    site = answers_file.apply(answers, site, ANSWERS)
    _must_have_short_names(site)
    before = existing_boards.read(os.path.join(folder, BOARDS))
    before.keep(site)
    questions = asking.of_site(site, answers)
    open_boards = {one.thing for one in questions if one.part == "boards" and one.needed}
    open_pdus = {one.thing for one in questions if one.part == "pdus" and one.needed}
    numbered = Numbered([board for board in site.boards if board.name not in open_boards], before.numbers)
    used = [name for name in site.used() if name not in open_pdus]
    wrong = faulty_pdus({name: settings(site.pdus[name]) for name in used})
    pdus = {name: settings(site.pdus[name]) for name in used if name not in {one.thing for one in wrong}}
    questions += [*wrong, *faulty_boards(numbered, pdus), *shared_outlets(site, numbered, pdus)]
    return _files(Moved(questions=questions, notes=site.notes), (source, site, answers), numbered, pdus, before)


def _must_have_short_names(site: Site) -> None:
    """Raise BadInput where a name is so long that no reader of YAML would take it as a key."""
    for device in (*site.boards, *site.pdus.values()):
        if len(device.name) > LONGEST_NAME:
            what = f"has a name of {len(device.name)} characters, {brief(device.name, 40)}"
            raise BadInput(what, device.where, f"give it one of at most {LONGEST_NAME}")


def _files(
    moved: Moved,
    origin: tuple[str, Site, Answers],
    numbered: Numbered,
    pdus: dict[str, Any],
    before: ExistingBoards,
) -> Moved:
    """Fill in the files, and what people are to know of them."""
    source, site, answers = origin
    wires, lines, vault = wiring(numbered, pdus), numbered.lines(), Vault(site.pdus)
    check(lines, wires, pdus)
    credentials = {name: vault.credentials(site.pdus[name]) for name in pdus}
    moved.vault, moved.boards = vault.names, {number: board.name for number, board in numbered.boards}
    name, server = answers.proxy.get("name"), answers.proxy.get("server")
    moved.host = name or ""
    if lines:
        moved.files[BOARDS] = boards_file.render(lines) + before.remarks(lines)
        moved.passed_on = before.passed_on(lines)
    if lines and name:
        used = {key: one for key, one in credentials.items() if one}
        moved.files[os.path.join("host_vars", f"{name}.yml")] = wiring_text(source, numbered, wires, pdus, used)
        if server:
            moved.files[INVENTORY] = inventory_text(source, name, server)
    if moved.questions or any(answers.said.values()):
        moved.files[ANSWERS] = answers_file.render(answers, moved.questions)
        moved.notes += before.left_out(site, lines)
    disks = sorted({str(line.arch) for line in lines if wires[line.id].get("disk", "none") != "none"})
    if disks:
        need = f"boards with disks need a RAM image for {', '.join(disks)}"
        moved.notes.append(f"{need}: name it in tftp_proxy_ram_images, in {OWN}")
    return moved


def _differing(moved: Moved, folder: str, change: Change, replace: bool) -> list[str]:
    """Note each file's change; leave out what is not to be written, and return the files that are there and differ."""
    held = []
    for name, text in list(moved.files.items()):
        path = os.path.join(folder, name)
        if name.startswith("host_vars"):
            _must_be_read(path, moved.host)
        there = text_of(path) if os.path.exists(path) else None
        if there is not None and _stays(name, (there, text), moved, replace):
            del moved.files[name]
            continue
        if there == text:
            del moved.files[name]
            continue
        change.note(path, {"lines": (there or "").splitlines()}, {"lines": text.splitlines()})
        if there is not None:
            held.append(name)
    return held


def _must_be_read(path: str, host: str) -> None:
    """Raise Refused where Ansible would read other variables of the proxy node than what is to be written."""
    there = variables.of(os.path.dirname(path), host)
    if there and there[0] != path:
        what = f"holds the variables of {host}, and Ansible reads no {os.path.basename(path)} beside it"
        way = "give another folder=FOLDER, and copy the file from there into it"
        remedy = way if os.path.isdir(there[0]) else f"rename it {os.path.basename(path)}"
        raise Refused(f"{what}; nothing was written", there[0], remedy)


def _stays(name: str, texts: tuple[str, str], moved: Moved, replace: bool) -> bool:
    """Return whether a file is people's own: an inventory that is there, answers, and a wiring that they changed.

    :param texts: what is there, and what it would be.
    """
    there, text = texts
    if name == INVENTORY:
        if not re.search(rf"(?<![\w.-]){re.escape(moved.host)}(?![\w.-])", there):
            moved.notes.append(f"{INVENTORY} is there and is not changed: it is to have {moved.host} in group proxies")
        return True
    if name.startswith("host_vars") and is_changed(there):
        # what was learned or added to a board's entry is nothing that it lacks; of another board it is wrong
        lines = lacking(there, text, exactly=bool(moved.passed_on))
        if lines and moved.passed_on:
            wired = f"wires {', '.join(moved.passed_on)} as boards that are others now"
            what = f"was changed since it was written, and {wired}; nothing was written"
            raise Refused(what, name, "take the new id out, or remove this file")
        stays = f"{name} was changed since it was written, and stays: write there what it lacks"
        moved.notes += [stays, *(f"{name} would have {line}" for line in lines)] if lines else []
        return True
    if name != ANSWERS or answers_file.parse(there, name).said == answers_file.parse(text, name).said:
        return name == ANSWERS
    if replace and there.startswith(answers_file.OURS):
        return False
    also = "" if not there.startswith(answers_file.OURS) else ", or replace=true does"
    moved.notes.append(f"{ANSWERS} has no line for some questions: write those that you answer{also}")
    return True


def _write(moved: Moved, folder: str) -> None:
    for name, text in moved.files.items():
        path = os.path.realpath(os.path.join(folder, name))
        with naming(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_whole(path, text, **as_before(path, 0o644))


def _told(moved: Moved, folder: str) -> dict[str, Any]:
    """Return the result's own fields, and the lines that people read."""
    questions = [
        dict(about=one.thing or "the proxy node", key=one.key, why=one.why, where=one.place, needed=one.needed)
        for one in moved.questions
    ]
    lines = [f"{BOARDS}: board{number} is {name}" for number, name in moved.boards.items()]
    lines += _asked_lines(moved.questions)
    own = variables.of_all_proxies(folder)
    lines += [f"! {name} is to be in a vault: {ENCRYPT.format(name=name, own=own)}" for name in moved.vault]
    lines += [f"- {note}" for note in moved.notes]
    if not moved.boards:
        path = os.path.join(folder, ANSWERS)
        lines.append(f"no board is written down yet: answer in {path}, then run this again")
    return dict(
        boards=[dict(id=number, name=name) for number, name in moved.boards.items()],
        questions=questions,
        vault=moved.vault,
        notes=moved.notes,
        lines=lines,
    )


def _asked_lines(questions: list[Question]) -> list[str]:
    """Return a line for each thing that something is asked of, and one for each reason that is more than silence."""
    things: dict[tuple[str, str], list[Question]] = {}
    for one in questions:
        things.setdefault((one.part, one.thing), []).append(one)
    lines = []
    for (part, thing), asked in things.items():
        needed = ", ".join(one.key for one in asked if one.needed)
        other = ", ".join(one.key for one in asked if not one.needed)
        also = f"{'; and ' if needed else ''}if you like {other}" if other else ""
        place = f"{part}: {thing}" if thing else part
        lines.append(f"? {thing or 'the proxy node'}: {needed}{also} → {ANSWERS}, {place}")
        lines += [f"    {one.key}: {one.reason}" for one in asked if one.reason]
    return lines
