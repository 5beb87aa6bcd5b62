# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hardware of a board as its RAM system sees it: memory, processors, disks, links.

It is for people who look after a board; no code decides by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.boot.shell import Shell
LOOK = """
sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/memory \\1/p' /proc/meminfo
echo "cpus $(grep -c '^processor' /proc/cpuinfo)"
say() { tr -cd ' -~' | sed 's/^ *//; s/ *$//; s/ /_/g'; }
for folder in /sys/block/*; do
    [ -e "$folder" ] || continue  # a board without any
    name=${folder##*/}
    case $name in loop* | ram* | zram* | dm-* | md* | sr* | fd* | nbd*) continue ;; esac
    serial=
    for file in "$folder/device/serial" "$folder/serial"; do [ -r "$file" ] && serial=$(say < "$file"); done
    [ -z "$serial" ] && [ -r "$folder/device/vpd_pg80" ] && serial=$(tail -c +5 "$folder/device/vpd_pg80" | say)
    model=$(say < "$folder/device/model" 2>/dev/null)
    echo "disk /dev/$name $(cat "$folder/size") ${model:--} ${serial:--}"
done
for folder in /sys/class/net/*; do
    name=${folder##*/}
    [ "$name" = lo ] && continue
    speed=$(cat "$folder/speed" 2>/dev/null)
    # Not operstate, which a driver may leave as it was.
    if [ "$(cat "$folder/carrier" 2>/dev/null)" = 1 ]; then state=up; else state=down; fi
    echo "link $name $(cat "$folder/address") $state ${speed:--}"
done
"""
#: Bytes of a sector as /sys/block/*/size counts them, whatever the disk's own sectors are.
SECTOR = 512


def hardware(shell: Shell, deadline: Deadline) -> dict[str, Any]:
    """Return the hardware of a board.

    :returns: {memory_mb, cpus, disks: [{device, bytes, model, serial}], links: [{name, mac, state, mbit}]}.
    """
    memory_mb = cpus = None
    disks, links = [], []
    for line in shell.run(["sh", "-c", LOOK], deadline).splitlines():
        kind, *words = line.split()
        if kind == "memory":
            memory_mb = int(words[0]) >> 10
        elif kind == "cpus":
            cpus = int(words[0])
        elif kind == "disk":
            device, sectors, model, serial = words
            disks.append(dict(device=device, bytes=int(sectors) * SECTOR, model=_text(model), serial=_text(serial)))
        elif kind == "link":
            name, mac, state, speed = words
            # The kernel has -1, or nothing, for a link without a speed.
            mbit = int(speed) if speed.isdigit() else None
            links.append(dict(name=name, mac=mac, state=state, mbit=mbit))
    return dict(memory_mb=memory_mb, cpus=cpus, disks=disks, links=links)


def in_words(found: dict[str, Any]) -> str:
    """Return what `hardware` found as one line for people."""
    disks = [f"{disk['device']} {disk['bytes'] >> 20} MB {disk['serial']}".rstrip() for disk in found["disks"]]
    links = []
    for link in found["links"]:
        speed = f" {link['mbit']} Mbit/s" if link["mbit"] else ""
        links.append(f"{link['name']} {link['state']}{speed}")
    return ", ".join([f"{found['memory_mb']} MB", f"{found['cpus']} CPUs", *(disks or ["no disk"]), *links])


def _text(word: str) -> str:
    return "" if word == "-" else word.replace("_", " ")
