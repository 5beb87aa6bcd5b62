# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who loaded a device program that is not the collection's, told by its cgroup, and how that owner is asked.

Nothing is changed here: these are texts for errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .rules import Rule
    from .v2 import Program

#: (pattern of a cgroup's name, what to do with its owner).
WAYS = (
    (
        r"lxc\.payload\.(?P<name>.+)",
        "let LXC do it: argument container: {name}, or lxc-cgroup -n {name} devices.allow '{rule}'",
    ),
    (
        r"(docker|libpod|cri-containerd|crio)-(?P<name>[0-9a-f]{12})[0-9a-f]*\.scope",
        "make container {name} anew with the device (--device)",
    ),
    (
        r"machine-qemu.+\.scope",
        "attach the device to the domain (virsh attach-device), or add it to cgroup_device_acl in qemu.conf",
    ),
    (
        r"(?P<name>.+\.(service|scope|slice|socket|mount|swap))",
        "systemctl set-property --runtime '{name}' DeviceAllow='{device}'",
    ),
)


def way(path: str, program: Program, rule: Rule) -> str:
    """Return what to do so that the owner of `program`, which is attached to cgroup `path`, allows the rule."""
    kind = "block" if rule.kind == "b" else "char"
    # systemd takes a node's path or, for wildcards, the driver's name in /proc/devices
    device = f"{kind}-DRIVER" if None in rule[1:3] else f"/dev/{kind}/{rule.major}:{rule.minor}"
    for part in reversed(path.split("/")):
        for pattern, text in WAYS:
            found = re.fullmatch(pattern, part)
            if found:
                return text.format(rule=rule, device=f"{device} {rule.access}", **found.groupdict())
    return f"ask who loaded it (bpftool prog show id {program.id})"
