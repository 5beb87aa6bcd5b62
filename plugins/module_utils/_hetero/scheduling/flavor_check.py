# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with flavors from outside: each key, and what belongs there. fit.py knows what a flavor asks of a node,
and the reader of a flavor knows where it was written.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, NamedTuple, Tuple

from ..core.errors import BadInput
from ..core.printable import brief
from ..core.spelling import instead
from ..openstack.specs import PROPERTY, REQUESTS
from . import extra_specs as operators
from .compute_hosts import COUNT
from .fit import AMOUNTS
from .spellings import BESIDE, NAMES, UNTOLD

KEYS = ("name", *AMOUNTS, "flavorid", "cpu_arch", "cpu_info", "extra_specs")
#: A grid of cores as boards_file.geometry returns it (rows x columns).
GEOMETRY = re.compile("[1-9][0-9]{0,3}x[1-9][0-9]{0,3}")


class Defect(NamedTuple):
    """What is wrong at one place of a flavor.

    :param path: keys from the flavor to the place; () is the flavor itself.
    """

    path: Tuple[Any, ...]
    what: str
    remedy: str

    @property
    def text(self) -> str:
        return f"{brief(self.what)}: {brief(self.remedy)}"


def defects(flavor: Any, name: Any = None) -> list[Defect]:
    """Return all that is wrong with one flavor, in the order of its keys.

    :param name: the flavor's name in its table.
    """
    if not isinstance(flavor, dict):
        return [Defect((), f"is {flavor!r}", "give a mapping with memory_mb, vcpus, local_gb, cpu_arch ...")]
    found = []
    for key, value in flavor.items():
        if key in KEYS:
            found += _CHECKS[key](key, value)
        else:
            found.append(Defect((key,), f"unknown key {key!r}", _instead(key)))
    if name is not None and flavor.get("name", name) != name and not any(one.path == ("name",) for one in found):
        found.append(Defect(("name",), f"name is {flavor['name']!r}", f"write {name}, or leave it out"))
    return found


def _instead(key: Any) -> str:
    if key in BESIDE:
        return f"write it as {NAMES.get(key, key)} in extra_specs"
    return "leave it out: no node tells it" if key in UNTOLD else instead(key, KEYS)


def table_defects(own: Mapping[Any, Any], defaults: Mapping[Any, Any]) -> list[tuple[Any, Defect]]:
    """Return all that is wrong with a table of flavors by name, also between them: [(name, Defect)].

    :param defaults: the table to which they are added; a flavor replaces a default of the same name.
    """
    found, ids = [], {}
    for name, flavor in defaults.items():
        if name not in own and isinstance(flavor, dict) and "flavorid" in flavor:
            ids.setdefault(str(flavor["flavorid"]), name)
    for name, flavor in own.items():
        if not (isinstance(name, str) and name.strip() == name and len(name.splitlines()) == 1):
            found.append((name, Defect((), f"{name!r} is no name of a flavor", "give one line of text")))
        wrong = defects(flavor, name)
        found += [(name, defect) for defect in wrong]
        if not isinstance(flavor, dict) or "flavorid" not in flavor or any(one.path == ("flavorid",) for one in wrong):
            continue
        first = ids.setdefault(str(flavor["flavorid"]), name)
        if first != name:
            what = f"flavorid {flavor['flavorid']} is {first}'s already"
            found.append((name, Defect(("flavorid",), what, "give each flavor its own, or leave it out")))
    return found


def validate(flavor: Any) -> None:
    """Check a flavor from outside.

    :raises BadInput: it names the flavor, each wrong key, and what belongs there.
    """
    found = defects(flavor)
    if not found:
        return
    name = flavor.get("name") if isinstance(flavor, dict) else None
    thing = f"flavor {name}" if isinstance(name, str) and name else "flavor"
    raise BadInput("; ".join([*(one.text for one in found[:-1]), found[-1].what]), thing, found[-1].remedy)


def _amount(key: str, value: Any) -> Iterator[Defect]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        yield Defect((key,), f"{key} is {value!r}", "give a whole number of 0 or more")


def _flavorid(key: str, value: Any) -> Iterator[Defect]:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        yield Defect((key,), f"{key} is {value!r}", "give a number or a text")


def _text(key: str, value: Any) -> Iterator[Defect]:
    if not (isinstance(value, str) and value):
        yield Defect((key,), f"{key} is {value!r}", "give a text, or leave it out")


def _cpu_info(key: str, value: Any) -> Iterator[Defect]:
    if not isinstance(value, dict):
        yield Defect((key,), f"{key} is {value!r}", "give a mapping such as {geometry: 8x8}")
        return
    for name, wanted in value.items():
        yield from _wanted((key, name), name, wanted)


def _wanted(path: tuple[Any, ...], name: Any, wanted: Any) -> Iterator[Defect]:
    shown = ".".join(map(str, path))
    if not isinstance(name, str):
        yield Defect(path, f"{shown} is no text as a key", "put it in quotes")
    elif isinstance(wanted, dict):
        for key, value in wanted.items():
            yield from _wanted((*path, key), key, value)
    elif path == ("cpu_info", "geometry"):
        if not (isinstance(wanted, str) and GEOMETRY.fullmatch(wanted)):
            yield Defect(path, f"{shown} is {wanted!r}", "give rows and columns of cores, such as 8x8")
    elif isinstance(wanted, list):
        if not wanted or any(isinstance(one, bool) or not isinstance(one, (str, int, float)) for one in wanted):
            yield Defect(path, f"{shown} is {wanted!r}", "list texts such as [sse4, aes]")
    elif isinstance(wanted, bool) or not isinstance(wanted, (str, int, float)) or wanted == "":
        yield Defect(path, f"{shown} is {wanted!r}", "give the least number, or texts such as 'sse4,aes'")


def _extra_specs(key: str, value: Any) -> Iterator[Defect]:
    if not isinstance(value, dict):
        yield Defect((key,), f"{key} is {value!r}", "give a mapping such as {hypervisor: s== LXC}")
        return
    for name, requirement in value.items():
        path, shown = (key, name), f"{key}.{name}"
        if not isinstance(name, str) or not name:
            yield Defect(path, f"{key} has {name!r} as a key", "put it in quotes")
            continue
        if name in NAMES:
            yield Defect(path, f"{shown} is another name of {NAMES[name]}", f"write {NAMES[name]}, and it once")
            continue
        wrong = operators.defect(requirement)
        if wrong:
            yield Defect(path, f"{shown} {wrong[0]}", wrong[1])
        elif name in ("gpus", "capabilities:gpus") and not COUNT.fullmatch(str(requirement).strip()):
            yield Defect(path, f"{shown} is {requirement!r}", "give the number of GPUs, such as '= 2'")
        elif name == PROPERTY and not REQUESTS.fullmatch(str(requirement).strip()):
            yield Defect(path, f"{shown} is {requirement!r}", "write name:count, with commas between several")


_CHECKS = {
    **dict.fromkeys(AMOUNTS, _amount),
    "flavorid": _flavorid,
    "name": _text,
    "cpu_arch": _text,
    "cpu_info": _cpu_info,
    "extra_specs": _extra_specs,
}
