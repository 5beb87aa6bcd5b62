# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.slurm_slots`: Slurm's nodes and partitions for flavors, as many as the owners could have.

A slot is a name, such as tp64-3, that Slurm gives jobs. It is at most one instance, on whichever node has room.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.compute_hosts import (
    aliases_of,
    gpu_arch,
    gpu_count,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import verdicts
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import listed
from ansible_collections.hetero.compute.plugins.plugin_utils.plain_values import plain

#: What a partition may say, and what a flavor's slots may.
PARTITION = ("default", "flavors", "idle", "max_time", "options", "priority", "root")
SLOTS = ("count", "image", "name", "options", "slurmd")
ROOTS = ("new", "kept")
#: What the programs of the role go by (roles/slurm/files/hetero_slurm/site_file.py).
POOL = ("name", "flavor", "count", "image", "new_root", "slurmd")
#: Most slots of a flavor: instances of a request are NAME-1 to NAME-10000.
MOST = 10000
#: As instances are called, with room for a hyphen and five digits in 63 characters (site/instance.py).
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,55}[a-z0-9])?\Z")
#: A partition's name, a key and a value of slurm.conf: none may end its word or its line.
WORD = re.compile(r"[A-Za-z0-9._-]+\Z")
VALUE = re.compile(r"[^\s#\"'\\]+\Z")
#: The ports of slurmds on the controller that stand in for slots begin here; boards' own have SlurmdPort, 6818.
PORTS = 17001
#: Characters that a feature of Slurm's cannot have, since they join features in a request (sbatch --constraint).
NO_FEATURE = re.compile(r"[^A-Za-z0-9._-]+")


def slurm_slots(instance_types: Any, results: Any, partitions: Any = None, slots: Any = None) -> dict[str, Any]:
    if not isinstance(instance_types, dict):
        raise AnsibleFilterError("hetero.compute.slurm_slots needs a mapping of flavors by name before the bar")
    instance_types, results = plain(instance_types), listed(results)
    silent = [str(one.get("item")) for one in results if "claims" not in one]
    if silent:
        why = f"{', '.join(silent)} cannot be asked, and their slots would be taken from Slurm: mend that first"
        raise AnsibleFilterError(f"hetero.compute.slurm_slots: {why}")
    try:
        most = {name: sum(one.most for one in verdicts(flavor, results)) for name, flavor in instance_types.items()}
    except HeteroError as error:
        raise AnsibleFilterError(f"hetero.compute.slurm_slots: {error}") from error
    slots = slots or {}
    partitions = partitions or {"hetero": {"flavors": [name for name in most if most[name]], "default": True}}
    wrong = [*_wrong_slots(slots, instance_types), *_wrong_partitions(partitions, instance_types)]
    if not wrong:
        used = list(dict.fromkeys(name for one in partitions.values() for name in one["flavors"]))
        names = {name: (slots.get(name) or {}).get("name") or _name(name, instance_types) for name in used}
        wrong = [*_wrong_names(names), *_two_roots(partitions), *_kept_without_slurmd(partitions, slots)]
    if wrong:
        raise AnsibleFilterError("\n".join(wrong))
    roots = {name: one.get("root", ROOTS[0]) for one in partitions.values() for name in one["flavors"]}
    pools = [_pool(instance_types[name], names[name], most[name], slots.get(name) or {}, roots[name]) for name in used]
    _ports(pools)
    return _as_lines([pool for pool in pools if pool["count"]], partitions, {pool["flavor"]: pool for pool in pools})


def _as_lines(
    pools: Sequence[dict[str, Any]], partitions: Mapping[str, Any], by_flavor: Mapping[str, Any]
) -> dict[str, Any]:
    kinds = [(pool["nodes"], *one.split(":")) for pool in pools for one in pool["gres"]]
    return dict(
        pools=[{key: pool[key] for key in POOL} for pool in pools],
        nodes=[pool["line"] for pool in pools],
        partitions=[_partition(name, one, by_flavor) for name, one in partitions.items()],
        gres=[f"NodeName={nodes} Name={kind} Type={type_} Count={many}" for nodes, kind, type_, many in kinds],
        gres_types=sorted({kind for _nodes, kind, _type, _many in kinds}),
        new_root=[name for name, one in partitions.items() if one.get("root", ROOTS[0]) == ROOTS[0]],
    )


def _name(flavor: str, instance_types: Mapping[str, Any]) -> str:
    """Return what a flavor's slots are called: what is before its dot, or all of it where another begins so, too."""
    short = _plain(flavor.partition(".")[0])
    alike = [name for name in instance_types if _plain(name.partition(".")[0]) == short]
    return short if len(alike) == 1 else _plain(flavor)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _pool(flavor: Mapping[str, Any], name: str, most: int, own: Mapping[str, Any], root: str) -> dict[str, Any]:
    count = int(own.get("count", most))
    words = {"CPUs": flavor.get("vcpus") or 1, "RealMemory": flavor.get("memory_mb") or 1, "State": "CLOUD"}
    words["Feature"] = ",".join(_features(flavor))
    gres = list(_gres(flavor))
    if gres:
        words["Gres"] = ",".join(gres)
    nodes = f"{name}-[1-{count}]"
    line = _line("NodeName", nodes, {**words, **(own.get("options") or {})})
    return dict(
        name=name, flavor=flavor["name"], count=count, image=str(own.get("image") or ""), new_root=root == ROOTS[0],
        nodes=nodes, gres=gres, line=line, slurmd=own.get("slurmd", True) is not False,
    )  # fmt: skip


def _ports(pools: Sequence[dict[str, Any]]) -> None:
    """Give each slot that a slurmd on the controller stands in for a port of its own."""
    port = PORTS
    for pool in pools:
        if not pool["slurmd"] and pool["count"]:
            pool["line"] += f" Port=[{port}-{port + pool['count'] - 1}]"
            port += pool["count"]


def _features(flavor: Mapping[str, Any]) -> list[str]:
    """Return what jobs may ask for by -C: the flavor, its architecture, geometry and architecture of GPUs."""
    info = flavor.get("cpu_info")
    geometry = info.get("geometry") if isinstance(info, Mapping) else None
    gpus = _arch(flavor) if gpu_count(dict(flavor)) else None
    named = [flavor["name"], flavor.get("cpu_arch"), geometry, gpus]
    return list(dict.fromkeys(NO_FEATURE.sub("_", str(one)) for one in named if one))


def _gres(flavor: Mapping[str, Any]) -> Iterable[str]:
    """Yield what of a flavor is a generic resource: GPUs by their architecture, PCI devices by their alias."""
    count = gpu_count(dict(flavor))
    if count:
        yield f"gpu:{_arch(flavor) or 'any'}:{count}"
    for alias, many in aliases_of(dict(flavor)):
        yield f"pci:{NO_FEATURE.sub('_', alias)}:{many}"


def _arch(flavor: Mapping[str, Any]) -> str | None:
    """Return the one architecture that a flavor's GPUs have (`s== fermi`), or None where its requirement is another."""
    found = re.fullmatch(r"(?:s==|=)?\s*([A-Za-z0-9._-]+)", (gpu_arch(dict(flavor)) or "").strip())
    return found[1] if found else None


def _partition(name: str, one: Mapping[str, Any], by_flavor: Mapping[str, Any]) -> str:
    nodes = [by_flavor[flavor]["nodes"] for flavor in one["flavors"] if by_flavor[flavor]["count"]]
    words: dict[str, Any] = {"Nodes": ",".join(nodes) or '""', "OverSubscribe": "EXCLUSIVE", "State": "UP"}
    words["Default"] = "YES" if one.get("default") else "NO"
    for option, key in (("max_time", "MaxTime"), ("priority", "PriorityTier"), ("idle", "SuspendTime")):
        if one.get(option) is not None:
            words[key] = one[option]
    return _line("PartitionName", name, {**words, **(one.get("options") or {})})


def _line(key: str, name: str, words: Mapping[str, Any]) -> str:
    return " ".join([f"{key}={name}", *(f"{word}={value}" for word, value in words.items())])


# ---- what is wrong with what an inventory says


def _wrong_slots(slots: Any, instance_types: Mapping[str, Any]) -> Iterable[str]:
    if not isinstance(slots, Mapping):
        yield "slurm_slots is no mapping: write {FLAVOR: {name: …, count: …, image: …}}"
        return
    for flavor, own in slots.items():
        of = f"slurm_slots, flavor {flavor}"
        yield from _unknown_flavor(of, flavor, instance_types)
        yield from _unknown_keys(of, own, SLOTS)
        if isinstance(own, Mapping):
            count, name = own.get("count", 1), own.get("name")
            if isinstance(count, bool) or not str(count).isdigit() or not 0 <= int(count) <= MOST:
                yield f"{of}: count is {count}: give a whole number from 0 to {MOST}"
            if own.get("slurmd", True) not in (True, False):
                yield f"{of}: slurmd is {own['slurmd']}: give true, or false where its boards cannot run slurmd"
            if name is not None and not NAME.match(str(name)):
                yield f"{of}: name is {name}: give 1 to 57 of a-z, 0-9 and -, with a letter or digit first and last"


def _wrong_partitions(partitions: Any, instance_types: Mapping[str, Any]) -> Iterable[str]:
    if not isinstance(partitions, Mapping):
        yield "slurm_partitions is no mapping: write {NAME: {flavors: [FLAVOR], root: new}}"
        return
    for name, one in partitions.items():
        of = f"slurm_partitions, partition {name}"
        if not WORD.match(str(name)):
            yield f"{of}: give a name of letters, digits, . _ and -"
        yield from _unknown_keys(of, one, PARTITION)
        if not isinstance(one, Mapping):
            continue
        if not isinstance(one.get("flavors"), list) or not one["flavors"]:
            yield f"{of}: flavors is {one.get('flavors', 'not there')}: give a list of flavors, such as [tp64.8x8]"
            continue
        for flavor in one["flavors"]:
            yield from _unknown_flavor(of, flavor, instance_types)
        if one.get("root", ROOTS[0]) not in ROOTS:
            both = "give new (each job finds a new one) or kept (as long as Slurm keeps the node)"
            yield f"{of}: root is {one['root']}: {both}"
        for key in ("idle", "max_time", "priority"):
            if key in one and not VALUE.match(str(one[key])):
                yield f"{of}: {key} is {one[key]}: give one word"


def _unknown_flavor(of: str, flavor: Any, instance_types: Mapping[str, Any]) -> Iterable[str]:
    if flavor not in instance_types:
        yield f"{of}: there is no flavor {flavor}: {_instead(str(flavor), sorted(instance_types))}"


def _unknown_keys(of: str, own: Any, known: Sequence[str]) -> Iterable[str]:
    if not isinstance(own, Mapping):
        yield f"{of}: is no mapping: give any of {', '.join(known)}"
        return
    for key in own:
        if key not in known:
            yield f"{of}: {key} is no option: {_instead(str(key), list(known))}"
    options = own.get("options") or {}
    pairs = options.items() if isinstance(options, Mapping) else [(options, "")]
    for key, value in pairs:
        if not WORD.match(str(key)) or not VALUE.match(str(value)):
            yield f"{of}: options has {key}: give words of slurm.conf, each with one word, such as {{MaxNodes: 4}}"


def _instead(given: str, known: list[str]) -> str:
    near = like(given, known)
    return f"write {near}" if near else f"give any of {', '.join(known)}"


def _wrong_names(names: Mapping[str, str]) -> Iterable[str]:
    by_name: dict[str, list[str]] = {}
    for flavor, name in names.items():
        by_name.setdefault(name, []).append(flavor)
    for name, flavors in by_name.items():
        if len(flavors) > 1:
            yield f"slots of {' and '.join(flavors)} are both called {name}: give one another name (slurm_slots, name)"
        elif not NAME.match(name):
            yield f"slots of {flavors[0]} cannot be called {name}: give them a name (slurm_slots, name)"
        for other in by_name:
            if re.fullmatch(rf"{re.escape(other)}-[0-9]+", name):
                like_slot = f"slots of {flavors[0]} are called {name}, as a slot of {other} is"
                yield f"{like_slot}: give another name (slurm_slots, name)"


def _two_roots(partitions: Mapping[str, Any]) -> Iterable[str]:
    """Yield flavors in partitions with both kinds of roots: a job that wants a new one would get one that was kept."""
    found: dict[str, dict[str, str]] = {}
    for name, one in partitions.items():
        for flavor in one["flavors"]:
            found.setdefault(flavor, {}).setdefault(one.get("root", ROOTS[0]), name)
    for flavor, roots in found.items():
        if len(roots) > 1:
            both = f"in {roots['new']}, whose roots are new, and in {roots['kept']}, whose roots are kept"
            yield f"slurm_partitions: the slots of {flavor} are {both}: have one kind, or a second flavor for the other"


def _kept_without_slurmd(partitions: Mapping[str, Any], slots: Mapping[str, Any]) -> Iterable[str]:
    """Yield flavors whose slots would let in the user of the job before: its key is in a root that stays."""
    for name, one in partitions.items():
        for flavor in one["flavors"] if one.get("root", ROOTS[0]) != ROOTS[0] else ():
            if (slots.get(flavor) or {}).get("slurmd", True) is False:
                both = f"slurm_partitions, partition {name}: {flavor} has no slurmd, so each job needs a new root"
                yield f"{both}: give root: new"
