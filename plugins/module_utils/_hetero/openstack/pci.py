# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI options of one kind of Nova node: what to write, and into which file so that the service reads it.

Options that were there before stay and are reported. options.py knows what a service reads.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, Iterator, List, Mapping, Union

from ..core.errors import HeteroError, Refused
from . import block, filters, migration, releases, specs
from .config_files import CONF, Name
from .options import Given, Reading, Service, Tree, plain, quoted, words
from .releases import ALIAS, AVAILABLE, DEVICE_SPEC, ENABLED, IN_PLACEMENT

#: Option → kinds of nodes that need it. Nova reads the alias again when it moves an instance (nova/conf/pci.py).
NEEDED = {ALIAS: ("api", "compute"), DEVICE_SPEC: ("compute",), ENABLED: ("scheduler",), AVAILABLE: ("scheduler",)}
CONF_D = "/etc/nova/nova.conf.d"
NOVA_CONF = "/etc/nova/nova.conf"
_SEE = "see its environment, and which files it reads"
#: Aliases, or rules of device_spec, as dicts with the keys of nova.conf.
Specs = Collection[Mapping[str, Any]]
#: {path: options that are added to it}
Lines = Dict[str, Dict[Name, Union[str, List[str]]]]


@dataclass
class Plan:
    """`texts`: {path: new text, or None to remove the file}; `elsewhere`: options that others have set already;
    `notes`: sentences for people; `patch`: what is left to migrate.
    """

    texts: dict[str, str | None] = field(default_factory=dict)
    elsewhere: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    patch: str = ""


def begin(kind: str) -> str:
    """Return the first line of a kind's blocks. A node of several kinds has a block for each."""
    return f"# BEGIN hetero.compute PCI of nova-{kind}, written by role nova_compute"


def drop_in(kind: str) -> str:
    return f"hetero-pci-{kind}.conf"


def effective(service: Service, tree: Tree) -> dict[str, Any]:
    """Return each option's values as Nova reads them, or None if it is not given; `pci_in_placement` is a bool."""
    reading = Reading(service, tree)
    found = {option: reading.value(option) for option in (ALIAS, DEVICE_SPEC, ENABLED, AVAILABLE)}
    told = reading.value(IN_PLACEMENT) if releases.names(IN_PLACEMENT, service.release) else None
    return dict(found, **{IN_PLACEMENT: bool(told and specs.yes_or_no(told[-1]))})


def plan(
    service: Service,
    tree: Tree,
    aliases: Specs = (),
    device_specs: Specs = (),
    migrate: bool = False,
    present: bool = True,
) -> Plan:
    """Return what to do so that a service has these aliases, these rules of device_spec, and the filter.

    :param aliases: dicts with the keys of nova.conf.
    :param device_specs: dicts with the keys of nova.conf.
    :param migrate: also change old names to those that the release wants.
    :param present: False only removes what the collection wrote.
    :raises Refused: another alias has one of these names.
    :raises BadInput: Nova refuses what it reads, or what is asked for.
    """
    made = Plan()
    bare = _bare(service, tree, made)
    if present:
        moved = to_migrate(service, bare)
        if migrate:
            made.texts.update(moved.texts)
            made.notes += moved.notes
            bare = bare.but(moved.texts)
        else:
            made.patch = moved.patch
            made.notes += moved.findings
        _add(service, bare, made, aliases, device_specs)
    made.texts = {path: text for path, text in made.texts.items() if text != tree.text(path)}
    _prove(service, tree.but(made.texts), aliases, device_specs, present)
    return made


def to_migrate(service: Service, tree: Tree) -> migration.Migration:
    """Return what is halfway migrated among the options that a service needs."""
    needed = [option for option, kinds in NEEDED.items() if service.kind in kinds]
    return migration.migrated(Reading(service, tree), needed)


def _bare(service: Service, tree: Tree, made: Plan) -> Tree:
    """Return the tree without what the collection wrote for this kind of node; note the removal in `made`."""
    for path in Reading(service, tree).paths:
        text = tree.text(path)
        if os.path.basename(path) == drop_in(service.kind):
            made.texts[path] = None
            continue
        old = block.plan(text or "", {}, CONF, path, begin=begin(service.kind))
        if old.before:
            made.texts[path] = old.text
    return tree.but(made.texts)


def _add(service: Service, bare: Tree, made: Plan, aliases: Specs, device_specs: Specs) -> None:
    reading = Reading(service, bare)
    lines: Lines = {}
    asked = {ALIAS: aliases, DEVICE_SPEC: device_specs}
    for option, wanted in asked.items():
        if service.kind in NEEDED[option]:
            missing = _missing(reading, option, wanted, made)
            if missing:
                path, name = _place(reading, option)
                lines.setdefault(path, {})[name] = [quoted(text) for text in missing]
    if service.kind in NEEDED[ENABLED]:
        _add_filter(reading, lines, made)
    for path, added in lines.items():
        text = bare.text(path)
        if os.path.basename(path) == drop_in(service.kind):
            made.texts[path] = _drop_in_text(service, added)
            continue
        new = block.plan(text or "", added, CONF, path, override=True, begin=begin(service.kind))
        made.texts[path] = new.text


def _missing(reading: Reading, option: str, wanted: Specs, made: Plan) -> list[str]:
    """Return the wanted texts that the service does not have; note the others in `made`."""
    texts = [json.dumps(spec) for spec in wanted]
    _check(option, texts, "what is asked for")
    there: dict[str, Given] = {}
    for said in reading.all(option):
        _check(option, [plain(said)], f"{said.path} line {said.line}")
        for one in specs.canonical(plain(said)):
            there.setdefault(one, said)
    missing = []
    for text in texts:
        known = there.get(specs.canonical(text)[0])
        if known is None:
            missing.append(text)
        else:
            made.elsewhere.append(dict(option=option, value=text, path=known.path, line=known.line, effect="kept"))
    if option == ALIAS:
        _no_other_of_that_name(there, texts)
    return missing


def _check(option: str, texts: list[str], thing: str) -> None:
    if option == ALIAS:
        for text in texts:
            specs.alias(text, thing)
    else:
        # whether one_time_use is allowed depends on an option that the service itself checks when it starts
        specs.device_specs(texts, thing, in_placement=True)


def _no_other_of_that_name(there: dict[str, Given], texts: list[str]) -> None:
    ours = {specs.canonical(text)[0] for text in texts}
    names = {json.loads(text)["name"].strip() for text in texts}
    for one, said in there.items():
        name = json.loads(one)["name"].strip()
        if name in names and one not in ours:
            what = f"there is another alias {name}: {said.value}; Nova would take any device of both"
            raise Refused(what, f"{said.path} line {said.line}", "take that line out, or ask for it as well")


def _place(reading: Reading, option: str) -> tuple[str, Name]:
    """Return (path, (section, name)) where a line of a multi-valued option is to be added."""
    told = reading.all(option)
    if told:
        # beside what is there and under its name: old and new names together would make a half-migrated file
        return told[-1].path, (told[-1].section, told[-1].name)
    return _own_file(reading), releases.names(option, reading.service.release)[0]


def _own_file(reading: Reading) -> str:
    """Return a drop-in file if the service reads some, else the file that it reads last."""
    service = reading.service
    folder = reading.drop_in_folder(CONF_D)
    if folder:
        return os.path.join(folder, drop_in(service.kind))
    return reading.paths[-1] if reading.paths else NOVA_CONF


def _add_filter(reading: Reading, lines: Lines, made: Plan) -> None:
    release = reading.service.release
    available = reading.value(AVAILABLE)
    if available is not None and not {filters.ALL, filters.PCI_CLASS} & set(available):
        path, name = _place(reading, AVAILABLE)
        lines.setdefault(path, {})[name] = [filters.PCI_CLASS]
    available = available or [filters.ALL]
    winner = reading.winner(ENABLED)
    found = filters.defaults(release) if winner is None else words(plain(winner))
    wanted, left_out = filters.with_pci(found, release)
    lost = filters.lost(found, available, release)
    made.notes += [f"{name} is left out of the filters: {lost[name]}" for name in left_out]
    made.notes += [f"{name} is among the filters: {why}" for name, why in lost.items() if name not in left_out]
    if wanted == found:
        if winner:
            made.elsewhere.append(_told(winner, "kept"))
        return
    path, name = (winner.path, (winner.section, winner.name)) if winner else _place(reading, ENABLED)
    if winner:
        made.elsewhere.append(_told(winner, "overridden"))
    lines.setdefault(path, {})[name] = quoted(",".join(wanted))


def _told(said: Given, effect: str) -> dict[str, Any]:
    return dict(option=ENABLED, value=said.value, path=said.path, line=said.line, effect=effect)


def _drop_in_text(service: Service, wanted: block.Wanted) -> str:
    sections = {}
    for (section, name), values in wanted.items():
        for value in values if isinstance(values, list) else [values]:
            sections.setdefault(section, []).append(f"{name} = {value}")
    parts = [f"# PCI of nova-{service.kind}, written by role nova_compute"]
    for section, options in sections.items():
        parts += ["", f"[{section}]", *options]
    return "\n".join(parts) + "\n"


def _prove(service: Service, tree: Tree, aliases: Specs, device_specs: Specs, present: bool) -> None:
    """Check that the service would have all that was asked for, and nothing once more than before.

    :raises HeteroError: it would not.
    """
    if not present:
        return
    reading = Reading(service, tree)
    for option, wanted in ((ALIAS, aliases), (DEVICE_SPEC, device_specs)):
        there = [one for text in reading.value(option) or [] for one in specs.canonical(text)]
        for spec in wanted if service.kind in NEEDED[option] else ():
            if specs.canonical(json.dumps(spec))[0] not in there:
                raise HeteroError(f"does not get {option} {json.dumps(spec)}", service.command, _SEE)
    if service.kind in NEEDED[ENABLED] and filters.PCI not in (reading.value(ENABLED) or []):
        raise HeteroError(f"does not get {filters.PCI}", service.command, _SEE)


def changes(plan_: Plan, tree: Tree) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (path, lines that go, lines that come), without other lines of the files."""
    for path, text in plan_.texts.items():
        lines = migration.difference(path, tree.text(path), text).splitlines()[2:]
        gone, new = ([line[1:] for line in lines if line.startswith(sign)] for sign in "-+")
        yield path, gone, new


def write(plan_: Plan, tree: Tree) -> None:
    """Write or remove a plan's files, each in one step."""
    for path, text in plan_.texts.items():
        real = tree.real(path)
        if text is None:
            os.unlink(real)
            continue
        os.makedirs(os.path.dirname(real), exist_ok=True)
        block.replace(real, text)


def read_back(service: Service, tree: Tree, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the service has now; raise HeteroError if it is not what was planned."""
    found = effective(service, tree)
    if found != wanted:
        differ = ", ".join(option for option in wanted if wanted[option] != found[option])
        raise HeteroError(f"has another {differ} than was written", service.command, "see who else writes its files")
    return found
