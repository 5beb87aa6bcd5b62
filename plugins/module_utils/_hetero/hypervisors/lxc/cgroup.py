# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device cgroup that a module's arguments name, by its path or by a running container."""

from __future__ import annotations

from typing import Any

from ...core.errors import BadInput
from ...devices.cgroup.devices import of_container, of_path
from ...devices.cgroup.rule_changes import Changing
from .liblxc import Container

#: Seconds to wait for another process that changes the same cgroup, which takes milliseconds unless LXC is slow.
LOCK_TIME = 30


def named(params: dict[str, Any]) -> Changing:
    """Return the Changing that a module's arguments name (core/argument_spec.py, CGROUP)."""
    if params["cgroup"]:
        return Changing(of_path(params["cgroup"]))
    container = Container(params["container"], params["lxcpath"])
    pid = container.init_pid
    if pid is None:
        remedy = "start it, or write the rules into its configuration"
        raise BadInput("does not run, so it has no cgroup", f"container {container.name}", remedy)
    return Changing(of_container(pid, container.name), container)
