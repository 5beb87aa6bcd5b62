# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host's PCI devices serve a flavor's requests, and otherwise at which stage none is left: as Nova 34's
PciPassthroughFilter and NUMATopologyFilter decide (nova/pci/stats.py). Placement, VDPA and ports are left out.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Tuple

from .device_match import FOR_PLACEMENT, PF, Device, Rule, pools, rule_for
from .specs import Alias, yes_or_no

#: A pool as device_match.pools returns it.
Pool = Dict[str, Any]
#: (alias, count) pairs of a flavor.
Wanted = Collection[Tuple[Alias, int]]
#: A host's NUMA nodes: [{"id": …, "socket": …}].
Cells = Collection[Mapping[str, Any]]
#: (ids of the host's NUMA nodes for the guest, all NUMA nodes of the host, policy).
Place = Tuple[List[int], Cells, str]

#: In Nova's order. `count` means that some are left, but fewer than wanted.
DEVICE_SPEC, FREE, ALIAS, NUMA, PFS, REMOTE, COUNT = STAGES = (
    *("device_spec", "free", "alias", "numa", "pf", "remote_managed"),
    "count",
)


@dataclass(frozen=True)
class Verdict:
    """Whether it fits; if not, at which `stage` and `why`."""

    fits: bool
    stage: str | None = None
    why: str = ""


def judge(
    devices: Collection[Device],
    rules: Collection[Rule],
    wanted: Wanted,
    guest_cells: int = 0,
    host_cells: Cells = (),
    policy: str | None = None,
) -> Verdict:
    """Return whether a host serves a flavor.

    :param devices: all devices of the host, as device_match.pools takes them.
    :param rules: the rules of its device_spec.
    :param wanted: the flavor's (Alias, count) pairs.
    :param guest_cells: number of the guest's NUMA nodes, 0 for none of its own.
    :param host_cells: the host's NUMA nodes, [{"id": …, "socket": …}].
    :param policy: the flavor's NUMA policy, which overrides an alias's.
    """
    found = pools(devices, rules)
    left = copy.deepcopy(found)
    for alias, count in wanted:
        chosen, stage = _narrow(left, alias, count)
        if chosen is None:
            alone, stage = _narrow(found, alias, count)
            if alone is not None:
                # other requests of the same flavor took what this one needs
                stage = COUNT
            elif stage == DEVICE_SPEC and any(rule_for(device, rules, devices) for device in devices):
                stage = FREE
            return Verdict(False, stage, _why(stage, alias, count, found, left, devices))
        _take(left, chosen, count)
    if guest_cells and not _fits_some_cells(found, wanted, guest_cells, host_cells, policy):
        what = f"no {guest_cells} of its {len(host_cells)} NUMA nodes have enough devices"
        names = ", ".join(f"{alias.name} ({policy or alias.policy})" for alias, _count in wanted)
        return Verdict(False, NUMA, f"{what} near them for {names}")
    return Verdict(True)


def _fits_some_cells(
    found: list[Pool], wanted: Wanted, guest_cells: int, host_cells: Cells, policy: str | None
) -> bool:
    for cells in itertools.combinations(host_cells, guest_cells):
        left = copy.deepcopy(found)
        for alias, count in wanted:
            place = ([cell["id"] for cell in cells], host_cells, policy or alias.policy)
            chosen, _stage = _narrow(left, alias, count, place)
            if chosen is None:
                break
            _take(left, chosen, count)
        else:
            return True
    return False


def _total(found: list[Pool]) -> int:
    return sum(pool["count"] for pool in found)


def _narrow(
    found: list[Pool], alias: Alias, count: int, place: Place | None = None
) -> tuple[list[Pool] | None, str | None]:
    """Return (pools that serve a request, None), or (None, the stage at which too few were left)."""
    stage = DEVICE_SPEC if not found else COUNT
    steps = (
        (ALIAS, lambda found: [pool for pool in found if _matches(pool, alias)]),
        (NUMA, lambda found: _near(found, count, *place) if place else found),
        (PFS, lambda found: found if _asks_for_pf(alias) else [pool for pool in found if pool.get("dev_type") != PF]),
        (REMOTE, lambda found: [pool for pool in found if not yes_or_no(pool.get("remote_managed"), strict=False)]),
    )
    for name, step in steps:
        narrowed = step(found)
        if found and not narrowed:
            stage = name
        found = narrowed
        if _total(found) < count:
            return None, stage
    return found, None


def _matches(pool: Pool, alias: Alias) -> bool:
    return any(
        all(_lower(pool.get(key)) == _lower(value) for key, value in spec.items() if key not in FOR_PLACEMENT)
        for spec in alias.specs
    )


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _asks_for_pf(alias: Alias) -> bool:
    return any(spec.get("dev_type") == PF for spec in alias.specs)


def _near(found: list[Pool], count: int, cells: list[int], host_cells: Cells, policy: str) -> list[Pool]:
    """Return pools near the guest's NUMA nodes: the nearest if they are enough, else as far away as the policy allows.
    """
    nearest = [pool for pool in found if pool["numa_node"] in cells]
    if policy == "required" or _total(nearest) >= count:
        return nearest
    if policy == "socket":
        if any(cell.get("socket") is None for cell in host_cells):
            return []
        sockets = {cell["socket"] for cell in host_cells if cell["id"] in cells}
        near = {cell["id"] for cell in host_cells if cell["socket"] in sockets}
        return [pool for pool in found if pool["numa_node"] in near]
    known = [*cells, None]
    nearer = [pool for pool in found if pool["numa_node"] in known]
    if policy == "legacy" or _total(nearer) >= count:
        return nearer
    return sorted(found, key=lambda pool: pool["numa_node"] not in known)


def _take(left: list[Pool], chosen: list[Pool], count: int) -> None:
    for pool in chosen:
        taken = min(count, pool["count"])
        pool["count"] -= taken
        count -= taken
        if pool["count"] == 0:
            left.remove(pool)
        if count == 0:
            break


def _shown(spec: Mapping[str, Any]) -> str:
    more = [value for key, value in spec.items() if key not in ("vendor_id", "product_id", *FOR_PLACEMENT)]
    return " ".join([f"{spec['vendor_id']}:{spec['product_id']}", *more])


def _why(
    stage: str | None, alias: Alias, count: int, found: list[Pool], left: list[Pool], devices: Collection[Device]
) -> str:
    """Return a sentence with the numbers that a person needs."""
    asked = " or ".join(_shown(spec) for spec in alias.specs)
    if stage == DEVICE_SPEC:
        return f"device_spec matches none of its {len(devices)} devices"
    if stage == FREE:
        return "all devices that device_spec matches are in use"
    if stage == ALIAS:
        kinds = sorted({f"{pool['vendor_id']}:{pool['product_id']} {pool['dev_type']}" for pool in found})
        return f"alias {alias.name} is {asked}, and free are {', '.join(kinds)}"
    if stage == PFS:
        return f'alias {alias.name} has no "device_type": "type-PF", and all devices that it matches are of that type'
    if stage == REMOTE:
        return f"all devices that alias {alias.name} matches are remote_managed"
    there, free = (sum(pool["count"] for pool in some if _matches(pool, alias)) for some in (found, left))
    if free < there:
        return f"{count} of alias {alias.name} wanted, {free} of {there} left by the flavor's other requests"
    return f"{count} of alias {alias.name} wanted, {there} there"
