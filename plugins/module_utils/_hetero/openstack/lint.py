# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All Nova nodes together: which flavor with PCI devices can be scheduled on which host, and what prevents it. pci.py
knows what one service has, stages.py which requests a host's devices serve.
"""

from __future__ import annotations

import glob
import os
import re
import socket
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

from ..core.errors import BadInput
from . import filters, options, pci, releases, specs, stages
from .device_match import names_pf
from .releases import ALIAS, AVAILABLE, DEVICE_SPEC, ENABLED, IN_PLACEMENT

NODE_KEYS = ("name", "kind", "effective", "devices", "numa_nodes")
#: Is called with a node and what was found there.
Find = Callable[[str, str], None]


@dataclass(frozen=True)
class Node:
    """A service on a node with its options; for a compute node also its devices and NUMA nodes ([{"id", "socket"}])."""

    name: str
    kind: str
    effective: dict[str, Any]
    devices: list[dict[str, Any]] = field(default_factory=list)
    numa_nodes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def service(self) -> str:
        return f"nova-{self.kind} of {self.name}"


def node(given: Mapping[str, Any]) -> Node:
    """Return the Node of a user's mapping, in the form in which module nova_pci_info returns it."""
    for key in given:
        if key not in NODE_KEYS:
            raise BadInput(f"unknown key {key!r}", "nodes", f"use {', '.join(NODE_KEYS)}")
    shown = [_device(device, given.get("name")) for device in given.get("devices") or []]
    devices = [device for device in shown if device]
    cells = given.get("numa_nodes")
    if not cells:
        known = {device["numa_node"] for device in devices if device["numa_node"] is not None}
        cells = [dict(id=cell, socket=None) for cell in sorted(known)]
    return Node(given["name"], given["kind"], given["effective"], devices, cells)


def _device(given: Mapping[str, Any], host: str | None) -> dict[str, Any] | None:
    """Return a device as pci_info shows it, or None if it was removed."""
    if given.get("state") == "removed":
        return None
    for key in ("address", "vendor_id", "product_id"):
        if not isinstance(given.get(key), str):
            raise BadInput(f"device without {key}: {given}", host, "give it as module pci_info returns it")
    free = given.get("free", given.get("state", "available") == "available")
    return dict(given, type=given.get("type") or "type-PCI", numa_node=given.get("numa_node"), free=bool(free))


def here(params: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, str]], str]:
    """Return the services of this machine (mappings for `node`), findings, and a patch for half-migrated files."""
    name = params["name"] or socket.gethostname()
    tree, found, findings, patch = options.Tree(params["root"]), [], [], ""
    for given in params["services"]:
        service = options.service(dict(given, release=params["release"], root=params["root"]))
        of_compute = dict(devices=params["devices"], numa_nodes=numa_nodes()) if service.kind == "compute" else {}
        found.append(dict(name=name, kind=service.kind, effective=pci.effective(service, tree), **of_compute))
        moved = pci.to_migrate(service, tree)
        findings += [dict(node=name, what=what) for what in options.assumed(given, service) + moved.findings]
        # services of one machine read the same files
        patch += "" if moved.patch in patch else moved.patch
    return found, findings, patch


def lint(
    given: Iterable[Mapping[str, Any]], flavors: Mapping[str, Any], release: str | int
) -> tuple[list[dict[str, str]], dict[str, dict[str, Any]]]:
    """Return (findings [{"node", "what"}], {flavor: {"command", "hosts", "error"}}).

    :param given: mappings of nodes, as `here` returns them.
    :param flavors: {name: flavor with `extra_specs`}.
    """
    nodes, release, findings = [node(one) for one in given], releases.number(release), []

    def find(of: str, what: str) -> None:
        findings.append(dict(node=of, what=what))

    known = _aliases(nodes, find)
    rules = {one.name: _rules(one, find) for one in nodes if one.kind == "compute"}
    _schedulers(nodes, release, find)
    hosts = [one for one in nodes if one.kind == "compute"]
    return findings, {name: _flavor(name, flavor or {}, known, hosts, rules) for name, flavor in flavors.items()}


def _aliases(nodes: list[Node], find: Find) -> dict[str, specs.Alias]:
    """Return the aliases that the API knows; a compute node that knows one differently is a finding."""
    found = {}
    for one in nodes:
        if one.kind != "scheduler":
            try:
                found[one.service] = one, specs.aliases(one.effective.get(ALIAS) or [], one.service)
            except BadInput as error:
                find(one.name, str(error))
    apis = [known for one, known in found.values() if one.kind == "api"]
    if not apis:
        find("", "no API node among the nodes: flavors are read with the aliases of the compute nodes")
    known = {
        name: alias
        for aliases in (apis or [known for _one, known in found.values()])
        for name, alias in aliases.items()
    }
    for service, (one, has) in found.items():
        for name, alias in known.items():
            if name not in has:
                use = (
                    "an instance with it cannot be moved there"
                    if one.kind == "compute"
                    else "flavors with it fail there"
                )
                find(one.name, f"{service} has no alias {name}: {use}")
            elif has[name] != alias:
                find(one.name, f"{service} has another alias {name} than the others")
    return known


def _rules(one: Node, find: Find) -> list[specs.DeviceSpec]:
    try:
        # report_in_placement is the service's own option; without it one_time_use stops the service when it starts
        rules = specs.device_specs(one.effective.get(DEVICE_SPEC) or [], one.service, in_placement=True)
    except BadInput as error:
        find(one.name, str(error))
        return []
    for rule in rules:
        if rule.remote and names_pf(rule, one.devices):
            # nova/pci/devspec.py looks for its ids in a file "product", which sysfs does not have
            find(one.name, f"{one.service} does not start with remote_managed at the address of a physical function")
            return []
    if not rules:
        find(one.name, f"{one.service} has no device_spec: it gives away nothing")
    texts = [text for given in one.effective.get(DEVICE_SPEC) or [] for text in specs.canonical(given)]
    for text in sorted({text for text in texts if texts.count(text) > 1}):
        find(one.name, f"{one.service} has {text} in device_spec {texts.count(text)} times")
    return rules


def _schedulers(nodes: list[Node], release: int, find: Find) -> None:
    schedulers = [one for one in nodes if one.kind == "scheduler"]
    if not schedulers:
        find("", "no scheduler node among the nodes: its filters were not looked at")
    for one in schedulers:
        enabled = one.effective.get(ENABLED)
        enabled = filters.defaults(release) if enabled is None else enabled
        available = one.effective.get(AVAILABLE) or [filters.ALL]
        if filters.PCI not in enabled:
            find(one.name, f"{one.service} has no {filters.PCI}: it chooses hosts without looking at their devices")
        for name, why in filters.lost(enabled, available, release).items():
            find(one.name, f"{one.service} does not start with {name}: {why}")
        if one.effective.get(IN_PLACEMENT):
            find(
                one.name,
                f"{one.service} has {IN_PLACEMENT}: Placement chooses devices first, which is not looked at here",
            )


def _flavor(
    name: str,
    flavor: Mapping[str, Any],
    known: Mapping[str, specs.Alias],
    hosts: list[Node],
    rules: Mapping[str, list[specs.DeviceSpec]],
) -> dict[str, Any]:
    extra_specs = flavor.get("extra_specs") or {}
    text = extra_specs.get(specs.PROPERTY)
    if text is None:
        return dict(command=None, hosts={}, error=f"flavor {name} asks for no PCI device ({specs.PROPERTY})")
    try:
        wanted = specs.requests(text, known, f"flavor {name}")
        cells, policy = guest_cells(extra_specs, f"flavor {name}"), _policy(extra_specs, f"flavor {name}")
    except BadInput as error:
        return dict(command=None, hosts={}, error=str(error))
    judged = {
        host.name: stages.judge(host.devices, rules[host.name], wanted, cells, host.numa_nodes, policy)
        for host in hosts
    }
    verdicts = {host: dict(fits=one.fits, stage=one.stage, why=one.why) for host, one in judged.items()}
    return dict(command=specs.command(name, text), hosts=verdicts, error=None)


def guest_cells(extra_specs: Mapping[str, Any], thing: str) -> int:
    """Return how many NUMA nodes a guest gets (numa_get_constraints in nova/virt/hardware.py)."""
    text = extra_specs.get("hw:numa_nodes")
    if text is not None:
        if not re.fullmatch(r"[1-9][0-9]*", str(text)):
            raise BadInput(f"hw:numa_nodes is {text!r}", thing, "give 1 or more")
        return int(text)
    pinned = extra_specs.get("hw:cpu_policy") in ("dedicated", "mixed")
    others = ("hw:mem_page_size", "hw:pmem", "resources:PCPU")
    return 1 if pinned or any(extra_specs.get(key) for key in others) else 0


def _policy(extra_specs: Mapping[str, Any], thing: str) -> str | None:
    policy = extra_specs.get("hw:pci_numa_affinity_policy")
    if policy is not None and policy not in specs.POLICIES:
        raise BadInput(f"hw:pci_numa_affinity_policy is {policy!r}", thing, f"give {', '.join(specs.POLICIES)}")
    return policy


def numa_nodes(sys: str = "/sys") -> list[dict[str, Any]]:
    """Return this machine's NUMA nodes as [{"id", "socket"}]."""
    found = []
    for path in glob.glob(os.path.join(sys, "devices/system/node/node[0-9]*")):
        first = re.match("[0-9]+", _read(os.path.join(path, "cpulist")))
        package = f"devices/system/cpu/cpu{first[0]}/topology/physical_package_id" if first else ""
        said = _read(os.path.join(sys, package)) if first else ""
        number = int(path.rpartition("node")[2])
        found.append(dict(id=number, socket=int(said) if said.isdigit() else None))
    return sorted(found, key=lambda cell: cell["id"])


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""
