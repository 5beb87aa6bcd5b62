# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of Nova's scheduler: which filters a release has, which it uses by default, and which it would not find.

The tables come from nova/scheduler/filters/ and nova/conf/scheduler.py of each release's tag (before Mitaka
host_manager.py).
"""

from __future__ import annotations

from typing import Collection, Iterable

from .releases import FIRST, NEWEST

PCI = "PciPassthroughFilter"
PCI_CLASS = "nova.scheduler.filters.pci_passthrough_filter.PciPassthroughFilter"
ALL = "nova.scheduler.filters.all_filters"

_FOREVER = NEWEST + 1
_PLACEMENT = "Placement counts that now"
#: Filter → (first release that has it, first release that no longer has it, what to know then).
_FILTERS = {
    "AffinityFilter": (FIRST, 11, "it was a base of others"),
    "AggregateCoreFilter": (FIRST, 22, "set allocation ratios instead; " + _PLACEMENT),
    "AggregateDiskFilter": (10, 22, "set allocation ratios instead; " + _PLACEMENT),
    "AggregateImagePropertiesIsolation": (9, _FOREVER, ""),
    "AggregateInstanceExtraSpecsFilter": (FIRST, _FOREVER, ""),
    "AggregateIoOpsFilter": (10, _FOREVER, ""),
    "AggregateMultiTenancyIsolation": (FIRST, _FOREVER, ""),
    "AggregateNumInstancesFilter": (10, _FOREVER, ""),
    "AggregateRamFilter": (FIRST, 22, "set allocation ratios instead; " + _PLACEMENT),
    "AggregateTypeAffinityFilter": (FIRST, _FOREVER, ""),
    "AllHostsFilter": (FIRST, _FOREVER, ""),
    "AvailabilityZoneFilter": (FIRST, 28, "Placement aggregates choose the zone now"),
    "BaseCoreFilter": (FIRST, 20, "it was a base of others"),
    "BaseRamFilter": (FIRST, 20, "it was a base of others"),
    "ComputeCapabilitiesFilter": (FIRST, _FOREVER, ""),
    "ComputeFilter": (FIRST, _FOREVER, ""),
    "CoreFilter": (FIRST, 20, _PLACEMENT),
    "DifferentHostFilter": (FIRST, _FOREVER, ""),
    "DiskFilter": (FIRST, 20, _PLACEMENT),
    "ExactCoreFilter": (10, 18, "bare metal goes by resource classes now"),
    "ExactDiskFilter": (10, 18, "bare metal goes by resource classes now"),
    "ExactRamFilter": (10, 18, "bare metal goes by resource classes now"),
    "GroupAffinityFilter": (FIRST, 11, "use ServerGroupAffinityFilter"),
    "GroupAntiAffinityFilter": (FIRST, 11, "use ServerGroupAntiAffinityFilter"),
    "ImagePropertiesFilter": (FIRST, _FOREVER, ""),
    "IoOpsFilter": (FIRST, _FOREVER, ""),
    "IsolatedHostsFilter": (FIRST, _FOREVER, ""),
    "JsonFilter": (FIRST, _FOREVER, ""),
    "MetricsFilter": (9, _FOREVER, ""),
    "NUMATopologyFilter": (10, _FOREVER, ""),
    "NumInstancesFilter": (FIRST, _FOREVER, ""),
    "PciPassthroughFilter": (FIRST, _FOREVER, ""),
    "RamFilter": (FIRST, 20, _PLACEMENT),
    "RetryFilter": (FIRST, 22, "Placement offers alternate hosts now"),
    "SameHostFilter": (FIRST, _FOREVER, ""),
    "ServerGroupAffinityFilter": (9, _FOREVER, ""),
    "ServerGroupAntiAffinityFilter": (9, _FOREVER, ""),
    "SimpleCIDRAffinityFilter": (FIRST, _FOREVER, ""),
    "TrustedFilter": (FIRST, 17, "use traits"),
    "TypeAffinityFilter": (FIRST, 17, "use AggregateTypeAffinityFilter"),
}
#: Filter → (first release that uses it by default, first that no longer does), in the order of the default.
_DEFAULTS = {
    "RetryFilter": (FIRST, 20),
    "AvailabilityZoneFilter": (FIRST, 24),
    "RamFilter": (FIRST, 16),
    "DiskFilter": (12, 16),
    "ComputeFilter": (FIRST, _FOREVER),
    "ComputeCapabilitiesFilter": (FIRST, _FOREVER),
    "ImagePropertiesFilter": (FIRST, _FOREVER),
    "ServerGroupAntiAffinityFilter": (9, _FOREVER),
    "ServerGroupAffinityFilter": (9, _FOREVER),
}


def known(release: int) -> set[str]:
    """Return the names of all filters that come with a release."""
    return {name for name, (first, gone, _why) in _FILTERS.items() if first <= release < gone}


def defaults(release: int) -> list[str]:
    """Return the filters that a scheduler uses without configuration."""
    return [name for name, (first, gone) in _DEFAULTS.items() if first <= release < gone]


def lost(names: Iterable[str], available: Collection[str], release: int) -> dict[str, str]:
    """Return {name: why} of filters that a scheduler would not find, so that it would not start
    (SchedulerHostFilterNotFound).

    :param available: values of available_filters: classes, or functions that return classes.
    """
    classes = {entry.rpartition(".")[2] for entry in available}
    found = known(release) if ALL in available else set()
    others = [entry for entry in available if entry != ALL and entry.rpartition(".")[2].islower()]
    lost = {}
    for name in names:
        if name in found | classes:
            continue
        first, gone, why = _FILTERS.get(name, (FIRST, _FOREVER, ""))
        if gone <= release:
            lost[name] = f"gone since Nova {gone}: {why}"
        elif name in known(release):
            lost[name] = f"available_filters names neither it nor {ALL}"
        elif name in _FILTERS:
            lost[name] = f"it came with Nova {first}"
        elif not others:
            lost[name] = "Nova has no such filter, and available_filters names no class of that name"
    return lost


def gone(name: str, release: int) -> bool:
    """Return whether only older releases have this filter."""
    return name in _FILTERS and _FILTERS[name][1] <= release


def with_pci(names: Collection[str], release: int) -> tuple[list[str], list[str]]:
    """Return (the filters that the release still has, with PciPassthroughFilter; the names that were left out)."""
    kept = [name for name in names if not gone(name, release)]
    left_out = [name for name in names if gone(name, release)]
    return (kept if PCI in kept else [*kept, PCI]), left_out
