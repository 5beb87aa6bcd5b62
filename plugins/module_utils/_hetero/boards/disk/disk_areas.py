# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find places of a board's disks that a wipe does not reach, and where a tenant may have left something.

These are hidden sectors, other namespaces, boot partitions, disks that the wiring does not name, and passwords that
would lock out the next tenant. This file only looks, over a Shell; it removes no password but the one that a wipe of
ours sets. Where the RAM image lacks a program, the result says what was not looked for. wipes.py decides what follows.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.boot.shell import Shell

#: The output of LOOK: {(kind, name): the rest of each of its lines}.
Lines = Dict[Tuple[str, str], List[str]]

#: The words that hdparm prints are from its source (sgio, identify.c, hdparm.c of 9.65), those that nvme prints from
#: nvme-cli 1.12 and 2.3.
LOOK = """
say() { tr -cd '!-~'; }
tell() { while read -r line || [ -n "$line" ]; do echo "$1 $line"; done; }
for folder in /sys/block/*; do
    [ -e "$folder" ] || continue
    name=${folder##*/}
    case $name in loop* | ram* | zram* | dm-* | md* | sr* | fd* | nbd* | mtdblock* | nvme*c*n*) continue ;; esac
    [ "$(cat "$folder/size")" = 0 ] && continue
    vendor=$(say < "$folder/device/vendor" 2>/dev/null)
    wwid=$(cat "$folder/device/wwid" "$folder/wwid" 2>/dev/null | head -n 1 | say)
    echo "block $name $(cat "$folder/size") ${vendor:--} ${wwid:--}"
done
for folder in /sys/bus/mmc_rpmb/devices/*; do [ -e "$folder" ] && echo "rpmb ${folder##*/}"; done
for disk do
    name=${disk##*/}
    [ "$(say < "/sys/block/$name/device/vendor" 2>/dev/null)" = ATA ] || continue
    command -v hdparm > /dev/null || { echo "lacks hdparm $name"; continue; }
    if hdparm -I "$disk" 2>/dev/null | grep -q '^[[:space:]]*enabled$'; then
        hdparm --user-master u --security-unlock hetero "$disk" > /dev/null 2>&1
        hdparm --user-master u --security-disable hetero "$disk" > /dev/null 2>&1
    fi
    hdparm -I "$disk" 2>&1 | tell "identity $name"
    hdparm -N "$disk" 2>&1 | tell "sectors $name"
    hdparm --dco-identify "$disk" 2>&1 | tell "overlay $name"
done
for folder in /sys/class/nvme/*; do
    [ -e "$folder" ] || continue
    name=${folder##*/}
    command -v nvme > /dev/null || { echo "lacks nvme $name"; continue; }
    for space in "$folder/$name"*n*; do [ -r "$space/nsid" ] && echo "attached $name $(cat "$space/nsid")"; done
    nvme id-ctrl "/dev/$name" 2>&1 | tell "controller $name"
    nvme list-ns "/dev/$name" --all 2>&1 | tell "spaces $name"
done
exit 0
"""
#: Bytes of a sector as /sys/block/*/size and ATA count them.
SECTOR = 512


@dataclass(frozen=True)
class Area:
    """A place that a wipe does not reach.

    :param name: its name for people and in inventories.
    :param text: what it is.
    :param remedy: what can be done about it.
    """

    name: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name} ({self.text}; {self.remedy})"

    @property
    def record(self) -> dict[str, str]:
        return asdict(self)


def areas(shell: Shell, devices: Sequence[str], deadline: Deadline) -> tuple[list[Area], list[str]]:
    """Return the places of a board that a wipe of these disks does not reach.

    :returns: ([Area], texts of what was not looked for and why).
    """
    said = shell.run(["sh", "-c", LOOK, "sh", *devices], deadline)
    words = [line.split() for line in said.splitlines() if line.strip()]
    lines: Lines = {}
    for line in words:
        lines.setdefault((line[0], line[1]), []).append(" ".join(line[2:]))
    names = [device.rsplit("/", 1)[-1] for device in devices]
    found, unseen = _others(lines, names), []
    for kind, name in lines:
        if kind == "lacks":
            about = {"hdparm": "HPA, DCO and password", "nvme": "namespaces that are not attached"}
            unseen += [f"{about[name]} of {device} (the RAM image has no {name})" for device in lines[kind, name]]
        elif kind == "identity":
            found += _ata(name, lines, unseen)
        elif kind == "spaces":
            found += _nvme(name, lines, unseen)
    return found, unseen


def _others(lines: Lines, names: list[str]) -> list[Area]:
    """Return the block devices that are neither a disk of the wiring nor another path to one."""
    blocks = {name: values[0].split() for (kind, name), values in lines.items() if kind == "block"}
    ours = {blocks[name][2] for name in names if name in blocks} - {"-"}
    found = []
    for name, (sectors, _vendor, wwid) in blocks.items():
        if name not in names and wwid not in ours:
            text = f"{int(sectors) * SECTOR >> 20} MB that are no disk of the board's wiring"
            found.append(Area(name, text, f"name /dev/{name} there, so that it is wiped"))
    rpmb = [name for kind, name in lines if kind == "rpmb"]
    return found + [Area(name, "an eMMC's RPMB, which a tenant can write", "it cannot be wiped") for name in rpmb]


def _ata(name: str, lines: Lines, unseen: list[str]) -> list[Area]:
    found = []
    sectors = re.search(r"max sectors\s*=\s*(\d+)/(\d+)[(,]?", "\n".join(lines.get(("sectors", name), [])))
    visible, native = (int(number) for number in sectors.groups()) if sectors else (1, 0)
    known = visible <= native
    if not known:
        unseen.append(f"HPA of {name} (hdparm -N said: {_last(lines, 'sectors', name)})")
    if visible < native:
        remedy = "libata.ignore_hpa=1 in the RAM image's cmdline has them wiped, hdparm -N gives them back"
        found.append(Area(f"{name}-hpa", f"{native - visible} sectors in a host protected area", remedy))
    overlay = re.search(r"Real max sectors:\s*(\d+)", "\n".join(lines.get(("overlay", name), [])))
    about = lines["identity", name]
    if overlay and known and int(overlay[1]) > native:
        remedy = "hdparm --dco-restore gives them back"
        found.append(Area(f"{name}-dco", f"{int(overlay[1]) - native} sectors hidden by its configuration", remedy))
    elif not overlay and any("Device Configuration Overlay" in line for line in about):
        unseen.append(f"DCO of {name} (hdparm --dco-identify said: {_last(lines, 'overlay', name)})")
    security = [line.split() for line in about[about.index("Security:") :]] if "Security:" in about else []
    if ["enabled"] in security or ["locked"] in security:
        state = "and is locked" if ["locked"] in security else "which locks it when its power goes"
        remedy = "remove it (hdparm --security-disable), or erase with the maker's (PSID)"
        found.append(Area(f"{name}-password", f"the disk has a password {state}", remedy))
    if not security and not any(line.startswith("Model Number") for line in about):
        unseen.append(f"password of {name} (hdparm -I said: {_last(lines, 'identity', name)})")
    return found


def _nvme(name: str, lines: Lines, unseen: list[str]) -> list[Area]:
    found = []
    spaces = [re.match(r"\[ *\d+\]: *(0x[0-9a-fA-F]+|\d+)", line) for line in lines["spaces", name]]
    attached = {int(line) for line in lines.get(("attached", name), [])}
    detached = sorted({int(space[1], 0) for space in spaces if space} - attached)
    for space in detached:
        text = "a namespace that is not attached"
        found.append(Area(f"{name}-nsid{space}", text, "attach it and name it in the wiring, or nvme delete-ns"))
    if not any(spaces):
        unseen.append(f"namespaces of {name} (nvme list-ns said: {_last(lines, 'spaces', name)})")
    free = re.search(r"^unvmcap\s*:\s*(\d+)", "\n".join(lines.get(("controller", name), [])), re.MULTILINE)
    if not free:
        unseen.append(f"capacity in no namespace of {name} (nvme id-ctrl said: {_last(lines, 'controller', name)})")
    elif int(free[1]):
        text = f"{int(free[1]) >> 20} MB in no namespace"
        found.append(Area(f"{name}-unallocated", text, "nvme create-ns and attach-ns have them wiped"))
    return found


def _last(lines: Lines, kind: str, name: str) -> str:
    """Return the last line that a program said, cut short."""
    said = lines.get((kind, name)) or ["nothing"]
    return said[-1][:80]
