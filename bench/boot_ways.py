# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds of a provision with boot files by HTTP beside TFTP, by turns, of a board with BIOS and of one with UEFI.

`bench/boot_ways.py`, as root, from the repository's root, with the lab up. Its first three boards become PCs with the
firmware of PCs meanwhile: SeaBIOS that boots by PXE, and OVMF that boots by PXE or by HTTP. With HTTP, all that comes
after the first stage does so by it, and of OVMF the first stage, too; with TFTP the proxy's web server is stopped.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record, say, turns  # noqa: E402

from ansible_collections.hetero.compute.bench.provision import LAB, PHASE, play  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.boot.net_booted import OVMF  # noqa: E402

FLASH = ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF}"]
#: OVMF's way to boot, by what it is told not to try (its OvmfPkg/RUNTIME_CONFIG.md).
WITHOUT = "-fw_cfg name=opt/org.tianocore/{}Support,string=n"
BY_PXE = " ".join(WITHOUT.format(way) for way in ("IPv6PXE", "IPv4Http", "IPv6Http")).split()
BY_HTTP = " ".join(WITHOUT.format(way) for way in ("IPv4PXE", "IPv6PXE")).split()
#: Board → what its machine has in place of the lab's firmware; without a ROM on its card OVMF takes its own driver.
FIRMWARE = {0: ("virtio-net-pci", []), 1: ("virtio-net-pci,romfile=", FLASH + BY_PXE)}
FIRMWARE[2] = ("virtio-net-pci,romfile=", FLASH + BY_HTTP)
#: (firmware, way, board), in the order of a turn.
WAYS = (("BIOS", "TFTP", 0), ("BIOS", "HTTP", 0), ("UEFI", "TFTP", 1), ("UEFI", "HTTP", 2))
#: OVMF does not start with the lab's 256.
MEMORY_MB = "512"
TIMES = turns(3)


def with_firmware(argv, card, firmware):
    """A lab machine's command with firmware of a PC in place of the lab's own."""
    words = list(argv)
    for option in ("-kernel", "-initrd"):
        del words[words.index(option) : words.index(option) + 2]
    words[words.index("-m") + 1] = MEMORY_MB
    at = next(number for number, word in enumerate(words) if word.startswith("virtio-net-pci,"))
    words[at] = f"{card},{words[at].partition('romfile=,')[2]},bootindex=1"
    return words + firmware


def pdus(lab):
    """Have the lab's PDUs go on with what this says; boards end with them."""
    program = [sys.executable, ROOT / "roles" / "lab" / "files" / "lab.py", LAB / "lab.json", "pdus"]
    subprocess.run([*program, "down"], check=True, stdout=subprocess.DEVNULL)
    (LAB / "lab.json").write_text(lab)
    subprocess.run([*program, "up"], check=True, stdout=subprocess.DEVNULL)


def as_pcs(lab):
    """The lab's description, with these boards as PCs."""
    for pdu in lab["pdus"].values():
        for fed in pdu["outlets"].values():
            number = int(fed["name"].replace("board", "")) if fed["name"].startswith("board") else None
            if number in FIRMWARE:
                fed["argv"] = with_firmware(fed["argv"], *FIRMWARE[number])
    return json.dumps(lab)


def web_server(state):
    argv = ["ssh", "-F", LAB / "ssh" / "proxy1", "proxy1", f"systemctl {state} hetero-http.service"]
    subprocess.run(argv, check=True, timeout=60)


def provision(way, board):
    """(seconds of the play, from power on to all files fetched, from power on to ssh)."""
    web_server("start" if way == "HTTP" else "stop")
    wall, output = play("provision_instance", instance="bench", flavor="tp64.8x8", board=board)
    play("terminate_instance", instance="bench")
    seconds = {match[3]: float(match[4]) for match in PHASE.finditer(output)}
    if ("fetched by HTTP" in output) != (way == "HTTP"):
        raise SystemExit(f"the files did not come by {way}:\n{output}")
    return wall, seconds["tftp"], seconds["running"]


def main():
    if not OVMF.exists() or not shutil.which("qemu-system-x86_64"):
        raise SystemExit(f"{OVMF} or qemu-system-x86_64 is not here: run tools/setup bench")
    before = (LAB / "lab.json").read_text()
    took = {(firmware, way): [] for firmware, way, _board in WAYS}
    try:
        pdus(as_pcs(json.loads(before)))
        play("proxy", tftp_proxy_boot_http="true")
        for _turn in range(TIMES):
            for firmware, way, board in WAYS:
                took[firmware, way].append(provision(way, board))
    finally:
        pdus(before)
        play("proxy")
    middle = {key: [statistics.median(column) for column in zip(*seen)] for key, seen in took.items()}
    for (firmware, way), (wall, files, running) in middle.items():
        said = f"provision {wall:.1f} s; since power on: files {files:.1f} s, ssh {running:.1f} s (boots: {TIMES})"
        say(f"{firmware} by {way}: {said}")
    for firmware in ("BIOS", "UEFI"):
        by_http, by_tftp = (middle[firmware, way][0] for way in ("HTTP", "TFTP"))
        record(f"provision by HTTP beside TFTP, {firmware}", f"{by_http:.1f} s beside {by_tftp:.1f} s")


if __name__ == "__main__":
    main()
