# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors (instance types) against boards: whether a board serves a flavor, and if not, why not.

This file knows what a board is and not what it does at present. The caller adds reasons such as "running jackie" before
it calls `summary`.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ..core.errors import BadInput
from ..site.boards_file import Board, geometry
from . import extra_specs as operators

#: Share of a flavor's memory_mb that firmware and kernel may keep: typical boards show 16218 of 16384 MB.
TOLERANCE = 0.02

#: The reason of a board that cannot have its root on a disk.
NO_DISK = "no disk to boot from is configured for it"
#: Amounts that a flavor takes from a node → their units in texts.
AMOUNTS = {"memory_mb": "MB of memory", "vcpus": "vcpus", "local_gb": "GB of disk"}


def _facts(board: Board | dict[str, Any]) -> dict[str, Any]:
    """Return a board's values (of a Board, or its dict from board_info) under the names that flavors use."""
    columns = board.columns if isinstance(board, Board) else board
    cpu_info = columns.get("cpu_info")
    cpu_info = cpu_info if isinstance(cpu_info, dict) else {}
    shape = geometry(cpu_info)
    cpu_info = dict(cpu_info, geometry=shape) if shape else cpu_info
    facts = dict(cpu_info, **columns)
    facts.update(cpu_info=cpu_info, cpu_arch=cpu_info.get("arch"), hypervisor=columns.get("hypervisor_type"))
    return facts


def _amount_reasons(flavor: dict[str, Any], facts: dict[str, Any], tolerance: float) -> Iterator[str]:
    for key in AMOUNTS:
        want, have = flavor.get(key, 0), facts.get(key)
        if not isinstance(have, int):
            if want:
                yield f"has no {key}"
        elif have < want * (1 - tolerance if key == "memory_mb" else 1):
            yield f"{key} {have} < {want}"


def _arch_reasons(flavor: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    want, have = flavor.get("cpu_arch"), facts["cpu_arch"]
    if want and not isinstance(have, str):
        yield "has no cpu_arch"
    elif want and have.lower() != want.lower():
        yield f"cpu_arch {have} is not {want}"


def _cpu_info_reasons(want: dict[str, Any], have: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield why a node's cpu_info does not meet a flavor's.

    A number asks for at least that much, a text with commas for each of its items, and a list for each of its members.
    A value that the node does not give is not there. These are the rules of ArchitectureScheduler, Nova's former
    scheduler for boards.
    """
    for key, wanted in want.items():
        name, value = path + key, have.get(key)
        if value is None:
            yield f"has no {name}"
        elif isinstance(wanted, dict):
            yield from _cpu_info_reasons(wanted, value if isinstance(value, dict) else {}, f"{name}.")
        elif isinstance(wanted, (int, float)):
            if not _at_least(value, wanted):
                yield f"{name} {value} < {wanted}"
        else:
            yield from _missing(name, _items(wanted), value)


def _at_least(value: Any, wanted: float) -> bool:
    try:
        return float(value) >= wanted
    except (TypeError, ValueError):
        return False


def _items(value: Any) -> list[str]:
    """Return the items of a list, or of a text with commas."""
    parts = value if isinstance(value, list) else str(value).split(",")
    return [str(part).strip() for part in parts]


def _missing(name: str, wanted: list[str], value: Any) -> Iterator[str]:
    there = _items(value)
    several = len(there) > 1 or isinstance(value, list)
    for item in wanted:
        if item.lower() not in [one.lower() for one in there]:
            yield f"{name} has no {item}" if several else f"{name} {value} is not {item}"


def _extra_reasons(extra_specs: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    for key, requirement in extra_specs.items():
        path = key.split(":")
        if len(path) > 1 and path.pop(0) != "capabilities":
            # Another scope (hw:, quota:) says nothing of the node, as in Nova's ComputeCapabilitiesFilter.
            continue
        value: Any = facts
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            yield f"has no {'.'.join(path)}"
            continue
        shown, wanted = value, requirement
        if path in (["cpu_arch"], ["hypervisor"]):
            value, wanted = str(value).lower(), str(requirement).lower()
        try:
            if not operators.satisfies(value, wanted, key):
                yield f"{'.'.join(path)} {shown} does not satisfy '{requirement}'"
        except BadInput as error:
            # The node is at fault, because the flavor was checked before; the search among other nodes must go on.
            yield f"{'.'.join(path)}: {error.what}"


def rejections(flavor: dict[str, Any], board: Board | dict[str, Any], tolerance: float = TOLERANCE) -> list[str]:
    """Return why a board cannot serve a flavor, as texts; an empty list if it can. A claim takes a whole board, so
    totals count.

    :param flavor: a flavor that flavor_check.validate accepts.
    :param board: a Board, or a dict with its columns.
    :param tolerance: the share of memory_mb that may be missing.
    """
    facts = _facts(board)
    wrong_arch = list(_arch_reasons(flavor, facts))
    # the names of another architecture's cores would say nothing more
    known = facts["cpu_arch"] if wrong_arch else None
    return [
        *_amount_reasons(flavor, facts, tolerance),
        *wrong_arch,
        *([] if known else _cpu_info_reasons(flavor.get("cpu_info") or {}, facts["cpu_info"])),
        *_extra_reasons(flavor.get("extra_specs") or {}, facts),
    ]


def describe(name: str, flavor: dict[str, Any]) -> str:
    """Return a flavor in one line: `tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB)`."""
    shape = (flavor.get("cpu_info") or {}).get("geometry")
    parts = [str(part) for part in (flavor.get("cpu_arch"), shape) if part]
    parts += [f"{flavor[key]} {unit}" for key, unit in (("memory_mb", "MB"), ("local_gb", "GB")) if flavor.get(key)]
    for key, requirement in (flavor.get("extra_specs") or {}).items():
        # `s== LXC` and `= 2` read better without their sign; any other sign is part of the meaning.
        plain = re.sub("^(s==|=) +", "", str(requirement))
        parts.append(f"{key} {plain}")
    return f"{name} ({', '.join(parts)})" if parts else name


def nodes_found(free: int, asked: int, there: int, nodes: str = "nodes") -> str:
    """Return what was found for a request, `7 of 10 nodes besides the 1 that it has`, or `no node`.

    :param free: nodes that could be had.
    :param asked: instances that are asked for, those that are there included.
    :param there: instances that have their nodes already.
    :param nodes: what they are called.
    """
    found = f"{free} of {asked - there} {nodes}" if free else "no node"
    return f"{found} besides the {there} that it has" if there else found


def summary(rejected: Mapping[Any, Sequence[str]], noun: str = "boards") -> list[str]:
    """Return lines that say why boards were rejected, the same reasons together, the largest group first.

    :param rejected: name of a board → its reasons; a board without reasons is left out.
    :param noun: the word for more than three of them.
    """
    return grouped((noun, str(board), reasons) for board, reasons in rejected.items())


def grouped(told: Iterable[tuple[str, str, Sequence[str]]], all_as_number: bool = False) -> list[str]:
    """Return a line for each reason of a kind of nodes, the most nodes first. Up to three are named, more are counted.

    :param told: (kind, node, reasons) of each; a node without reasons is left out.
    :param all_as_number: also count two or three if they are all nodes of their kind.
    """
    groups, kinds = {}, {}
    for kind, node, why in told:
        if why:
            groups.setdefault((kind, ", ".join(why)), []).append(node)
            kinds[kind] = kinds.get(kind, 0) + 1
    largest_first = sorted(groups.items(), key=lambda group: -len(group[1]))
    width = max((len(str(len(nodes))) for _key, nodes in largest_first), default=0)
    said = []
    for (kind, why), nodes in largest_first:
        counted = len(nodes) > 3 or (all_as_number and len(nodes) == kinds[kind] > 1)
        said.append(f"{len(nodes):>{width}} {kind}: {why}" if counted else f"{', '.join(nodes)}: {why}")
    return said


def by_reason(whys: Mapping[str, str | None]) -> str:
    """Return in words why things are not given, the same reasons together: `0000:06:00.0, 0000:07:00.0 is vm-1's; …`.

    :param whys: address of a thing → why it is not given; one without a reason is left out.
    """
    groups: dict[str, list[str]] = {}
    for address, why in sorted(whys.items()):
        if why:
            groups.setdefault(why, []).append(address)
    return "; ".join(f"{', '.join(addresses)} {why}" for why, addresses in groups.items())
