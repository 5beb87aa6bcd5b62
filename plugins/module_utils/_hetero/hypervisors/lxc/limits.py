# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's limits of memory, processors and processes as LXC's keys, for the controllers that this host has: a key
for a missing controller would stop the start.
"""

from __future__ import annotations

import glob
import os

from ...core.errors import naming

CGROUP = "/sys/fs/cgroup"
#: Microseconds in which cfs_period_us and cpu.max count (the kernel's default).
PERIOD = 100000
CONTROLLERS = ("memory", "cpu", "pids")


def controllers(cgroup: str = CGROUP) -> dict[str, str]:
    """Return {"memory": "v1" or "v2", "cpu": …, "pids": …} of the controllers that this host has."""
    unified = os.path.join(cgroup, "cgroup.controllers")
    if os.path.exists(unified):
        with naming(unified), open(unified, encoding="ascii") as file:
            return dict.fromkeys(set(CONTROLLERS) & set(file.read().split()), "v2")
    return {name: "v1" for name in CONTROLLERS if os.path.exists(os.path.join(cgroup, name, "cgroup.procs"))}


def keys(memory_mb: int, vcpus: int, pids: int, cgroup: str = CGROUP) -> list[str]:
    """Return lines of a container's configuration; 0 is no limit.

    :param pids: number of processes, with each of their threads.
    """
    found = controllers(cgroup)
    lines = []
    if memory_mb and "memory" in found:
        key = "lxc.cgroup2.memory.max" if found["memory"] == "v2" else "lxc.cgroup.memory.limit_in_bytes"
        lines += [f"{key} = {memory_mb << 20}", *_no_swap(found["memory"], memory_mb, cgroup)]
    if vcpus and found.get("cpu") == "v2":
        lines.append(f"lxc.cgroup2.cpu.max = {vcpus * PERIOD} {PERIOD}")
    elif vcpus and found.get("cpu") == "v1":
        lines.append(f"lxc.cgroup.cpu.cfs_quota_us = {vcpus * PERIOD}")
    if pids and "pids" in found:
        lines.append(f"lxc.cgroup{'2' if found['pids'] == 'v2' else ''}.pids.max = {pids}")
    return lines


def _no_swap(version: str, memory_mb: int, cgroup: str) -> list[str]:
    """Return the line that keeps a container from the host's swap, which no flavor offers; none on a host whose kernel
    counts no swap (swapaccount=0), where it would stop the start.
    """
    if version == "v2":
        # the root itself has no limits
        there = glob.glob(os.path.join(glob.escape(cgroup), "*", "memory.swap.max"))
        return ["lxc.cgroup2.memory.swap.max = 0"] if there else []
    both = "memory.memsw.limit_in_bytes"
    return [f"lxc.cgroup.{both} = {memory_mb << 20}"] if os.path.exists(os.path.join(cgroup, "memory", both)) else []


def missing(memory_mb: int, vcpus: int, pids: int, cgroup: str = CGROUP) -> list[str]:
    """Return what cannot be limited although it should be, because this host has no controller for it."""
    found = controllers(cgroup)
    return [name for name, wanted in zip(CONTROLLERS, (memory_mb, vcpus, pids)) if wanted and name not in found]
