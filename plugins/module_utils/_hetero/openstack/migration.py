# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova's files that are halfway from old option names to new ones: what is wrong in them, and the corrected texts with
the difference as a patch.

A multi-valued option that is given by both names has the values of both, so specs are doubled. A name that a release no
longer reads has no effect, silently. Filters that no longer exist stop the scheduler.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import Any, Collection, Dict

from . import filters, releases, specs
from .config_files import CONF, Name, parse, split
from .options import Given, Reading, plain, quoted, words
from .releases import ALIAS, AVAILABLE, DEVICE_SPEC, ENABLED

#: Changes of a file: `out` are lines to remove (Given), `into` options to add, {(section, name): values}.
Edit = Dict[str, Any]


@dataclass
class Migration:
    """`findings` say what is wrong, `notes` what is done about it; `texts` are {path: new text}, `patch` their
    difference.
    """

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    patch: str = ""


def migrated(reading: Reading, options: Collection[str]) -> Migration:
    """Return what a service's half-migrated files would be with the names that its release wants.

    :param options: the options that the service needs.
    """
    found, edits = Migration(), {}
    for option in (ALIAS, DEVICE_SPEC):
        if option in options:
            _join(reading, option, found, edits)
    if ENABLED in options:
        _filters(reading, found, edits)
    for path, edit in edits.items():
        old = reading.tree.text(path)
        found.texts[path] = _edited(old or "", path, edit)
        found.patch += difference(path, old, found.texts[path])
    return found


def difference(path: str, old: str | None, new: str | None) -> str:
    """Return a patch without the lines around a change, because they may hold secrets."""
    before, after = ((text or "").splitlines() for text in (old, new))
    return "".join(f"{line}\n" for line in difflib.unified_diff(before, after, path, path, n=0, lineterm=""))


def _edit(edits: dict[str, Edit], path: str) -> Edit:
    """Return the changes of a file so far, to be added to."""
    return edits.setdefault(path, dict(out=[], into={}))


def _join(reading: Reading, option: str, found: Migration, edits: dict[str, Edit]) -> None:
    """Put all lines of a multi-valued option under the name that the release wants: each value once, in Nova's order.
    """
    told = reading.all(option)
    used = {(said.section, said.name) for said in told}
    if len(used) < 2:
        return
    section, name = releases.names(option, reading.service.release)[0]
    places = "; ".join(f"{said.path} line {said.line}: {said.name}" for said in told)
    found.findings.append(f"half migrated: {option} is given by {len(used)} names, and Nova takes all of it ({places})")
    seen = set()
    for path in reading.paths:
        here = [said for said in told if said.path == path]
        kept = []
        for said in here:
            for one in specs.canonical(plain(said)):
                if one not in seen:
                    kept.append((said, one))
                seen.add(one)
        values = [_value(said, one) for said, one in kept]
        if values == [said.value for said in here] and all(said.name == name for said in here):
            continue
        edit = _edit(edits, path)
        edit["out"] += here
        edit["into"][section, name] = values
        found.notes.append(f"{path}: {option} is now {name} of [{section}], {len(values)} of {len(here)} lines")


def _value(said: Given, one: str) -> str:
    """Return a value as it was written, or an object of a list as a value of its own."""
    return said.value if len(specs.canonical(plain(said))) == 1 else quoted(json.dumps(json.loads(one)))


def _filters(reading: Reading, found: Migration, edits: dict[str, Edit]) -> None:
    release = reading.service.release
    available = reading.value(AVAILABLE) or [filters.ALL]
    old = {option: _all(reading, releases.unread(option, release)) for option in (ENABLED, AVAILABLE)}
    for option, told in old.items():
        for said in told:
            found.findings.append(
                f"{said.path} line {said.line}: Nova {release} does not read {said.name}; "
                f"it wants {releases.names(option, release)[0][1]}"
            )
            _edit(edits, said.path)["out"].append(said)
            found.notes.append(f"{said.path}: {said.name} is taken out")
    if old[AVAILABLE]:
        own = [said.value for said in old[AVAILABLE] if not said.value.startswith("nova.scheduler.filters.")]
        own = [value for value in own if value not in available]
        if own:
            path = old[AVAILABLE][-1].path
            _edit(edits, path)["into"]["filter_scheduler", AVAILABLE] = list(dict.fromkeys([*available, *own]))
    _enabled(reading, old[ENABLED], found, edits)


def _all(reading: Reading, names: list[Name]) -> list[Given]:
    return [said for section, name in names for said in reading.given(section, name)]


def _enabled(reading: Reading, unread: list[Given], found: Migration, edits: dict[str, Edit]) -> None:
    """Remove filters that no longer exist from enabled_filters, and take over an old line that the release does not
    read.
    """
    release, winner = reading.service.release, reading.winner(ENABLED)
    losers = [
        said
        for section, name in releases.names(ENABLED, release)[1:]
        for said in reading.given(section, name)
        if winner and (said.section, said.name) != (winner.section, winner.name)
    ]
    counts = winner.name if winner else ""
    for said in losers:
        found.findings.append(f"half migrated: {said.path} line {said.line}: {counts} counts, not {said.name}")
        _edit(edits, said.path)["out"].append(said)
        found.notes.append(f"{said.path}: {said.name} is taken out")
    source = winner or (unread[-1] if unread else None)
    if source is None:
        return
    names = words(plain(source))
    gone = [name for name in names if filters.gone(name, release)]
    for name in gone:
        why = filters.lost([name], [filters.ALL], release)[name]
        found.findings.append(f"{source.path} line {source.line}: {name} is {why}")
        found.notes.append(f"{source.path}: {name} is left out, {why}")
    if gone or not winner:
        edit = _edit(edits, source.path)
        edit["out"].append(source)
        place = (winner.section, winner.name) if winner else releases.names(ENABLED, release)[0]
        edit["into"][place] = [quoted(",".join(name for name in names if name not in gone))]


def _edited(text: str, path: str, edit: Edit) -> str:
    """Return a file without some lines and with options added after the last one of their sections."""
    lines = split(text)
    parsed = parse(lines, CONF, path)
    out = {(said.section, said.name, said.line - 1) for said in edit["out"]}
    gone, first = set(), {}
    for option in parsed.options:
        if (option.section, option.name, option.line) in out:
            gone |= set(range(option.line, option.last + 1))
            first.setdefault((option.section, option.name), option.line)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    added, sections = {}, {}
    for (section, name), values in edit["into"].items():
        new = [f"{name} = {value}{end}".replace("\n", f"{end}    ", value.count("\n")) for value in values]
        if (section, name) in first:
            added.setdefault(first[section, name], []).extend(new)
        elif section in parsed.ends:
            added.setdefault(parsed.ends[section] + 1, []).extend(new)
        else:
            sections.setdefault(section, []).extend(new)
    written = []
    for at, line in enumerate([*lines, ""]):
        written += added.get(at, [])
        if at not in gone:
            written.append(line)
    for section, new in sections.items():
        written += [end, f"[{section}]{end}", *new]
    return "".join(written)
