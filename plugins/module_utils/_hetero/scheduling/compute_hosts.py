# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors against compute hosts: which hypervisor a flavor asks for, how many GPUs of which architecture, how many
PCI devices of which alias, and why a host cannot serve it.

The host's database knows what is free at present, and claims/host/allocation.py decides who gets which GPU.
"""

from __future__ import annotations

import re
from typing import Any

from ..core.errors import BadInput
from ..openstack.specs import PROPERTY
from .extra_specs import satisfies
from .fit import rejections as rejections_of_facts

#: A requirement for a number of GPUs. Exactly that many are given.
COUNT = re.compile(r"(?:(?:=|==|>=)\s*)?([0-9]+)")


def _requirement(flavor: dict[str, Any], key: str) -> Any:
    """Return what a flavor's extra_specs say of `key`, without scope or in Nova's scope `capabilities:`, or None."""
    extra = flavor.get("extra_specs") or {}
    return extra.get(key, extra.get(f"capabilities:{key}"))


def asks_for(flavor: dict[str, Any], hypervisor: str) -> bool:
    """Return whether a flavor names this hypervisor, in either case of letters.

    A flavor that names none is for boards.
    """
    requirement = _requirement(flavor, "hypervisor")
    return requirement is not None and satisfies(hypervisor.lower(), str(requirement).lower())


def hypervisor_for(flavor: dict[str, Any], host: dict[str, Any]) -> str:
    """Return the hypervisor of a host that a flavor asks for, or the host's first one."""
    offered = host.get("hypervisors") or [host["hypervisor"]]
    return next((one for one in offered if asks_for(flavor, one)), offered[0])


def gpu_count(flavor: dict[str, Any]) -> int:
    """Return how many GPUs an instance of this flavor gets; raise BadInput for a requirement that is no single number.
    """
    requirement = _requirement(flavor, "gpus")
    if requirement is None:
        return 0
    found = COUNT.fullmatch(str(requirement).strip())
    if not found:
        what = f"extra_specs.gpus is {requirement!r}"
        raise BadInput(what, f"flavor {flavor.get('name')}", "give the number of GPUs, such as '= 2'")
    return int(found.group(1))


def aliases_of(flavor: dict[str, Any]) -> list[tuple[str, int]]:
    """Return [(alias, count)] of a flavor's property pci_passthrough:alias."""
    text = str((flavor.get("extra_specs") or {}).get(PROPERTY, ""))
    parts = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    return [(name, max(1, int(count or 1))) for name, _colon, count in parts]


def _count_of(flavor: dict[str, Any], there: int) -> str | int:
    """Return the number of GPUs that a flavor's requirement is compared with.

    A mere number counts as met, like '= 2'.
    """
    asked = str(_requirement(flavor, "gpus"))
    return asked if asked.strip().isdigit() and int(asked) <= there else there


def gpu_arch(flavor: dict[str, Any]) -> str | None:
    """Return the requirement on the architecture of each GPU (`s== fermi`), or None for any."""
    requirement = _requirement(flavor, "gpu_arch")
    return None if requirement is None else str(requirement)


def rejections(flavor: dict[str, Any], host: dict[str, Any]) -> list[str]:
    """Return why a host cannot serve a flavor whatever is free, as texts; an empty list if it can.

    :param flavor: a flavor that flavor_check.validate accepts.
    :param host: a result of host_info: cpu_arch, hypervisors, capacity (dicts with total), gpus (dicts with arch).
    """
    hypervisor = hypervisor_for(flavor, host)
    wanted = gpu_arch(flavor)
    archs = [gpu["arch"] for gpu in host["gpus"] if not gpu.get("unsupported")]
    matching = [arch for arch in archs if wanted is None or satisfies(arch or "", wanted)]
    facts = {key: amount["total"] for key, amount in host["capacity"].items()}
    gpus = _count_of(flavor, len(matching or archs))
    facts.update(hypervisor_type=hypervisor, cpu_info={"arch": host["cpu_arch"]}, gpus=gpus)
    facts["gpu_arch"] = matching[0] if matching else ", ".join(sorted({arch or "unknown" for arch in archs})) or None
    reasons = rejections_of_facts(flavor, facts, tolerance=0)
    if not reasons and not asks_for(flavor, hypervisor):
        reasons = [f"the flavor does not ask for it (extra_specs: hypervisor: s== {hypervisor})"]
    return reasons
