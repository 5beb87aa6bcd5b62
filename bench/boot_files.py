# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds in which a board's iPXE loads kernel and initrd by HTTP and by TFTP, by turns, from the role's servers.

`bench/boot_files.py [MEGABYTES]`, as root, from the repository's root; no lab is needed. One board is emulated, without
KVM, in a network of its own with the role's DHCP, TFTP and nginx; its network card is a virtio one with QEMU's iPXE.
Counted is from the request for the kernel to the first request after both files are there, as the proxy sees them.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record, say, turns  # noqa: E402

from ansible_collections.hetero.compute.tests.unit.drivers.boot.net_booted import OVER, missing, proxy  # noqa: E402

#: As the lab's kernel; the initrd has a tenth of it (net_booted.py).
MEGABYTES = 14.0
TIMES = turns(5)
#: After this many seconds a boot has gone wrong.
LIMIT = 300


def loaded(megabytes, http):
    """(kind of requests, seconds) of one boot."""
    with proxy(http=http, megabytes=megabytes) as served:
        seen = served.boot(seconds=LIMIT)
    at = {name: (kind, at) for kind, name, at in reversed(seen)}
    if OVER not in at:
        raise SystemExit(f"the board did not load its files within {LIMIT} s: {seen}")
    return at["vmlinux_0"][0], at[OVER][1] - at["vmlinux_0"][1]


def main(megabytes):
    if missing():
        raise SystemExit(f"not here: {', '.join(missing())}: run tools/setup test")
    took = {"http": [], "tftp": []}
    for _turn in range(TIMES):
        for way, seconds in took.items():
            kind, each = loaded(megabytes, way == "http")
            if kind != way:
                raise SystemExit(f"the kernel came by {kind}, not by {way}")
            seconds.append(each)
    middle = {way: statistics.median(seconds) for way, seconds in took.items()}
    size = int(megabytes * 2**20) + int(megabytes * 2**20) // 10
    for way, seconds in took.items():
        spread = f"{min(seconds):.2f} to {max(seconds):.2f}, boots: {TIMES}"
        say(f"{way.upper()}: {size:,} bytes in {middle[way]:.2f} s ({spread})")
    record("kernel and initrd by HTTP, times by TFTP", f"{middle['http'] / middle['tftp']:.2f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES)
