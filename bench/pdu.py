# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to turn 8 outlets off and read them back, beside fence_apc doing so with one; screens counted.

Both talk to the lab's emulated PDU in one run. Needs Debian's fence-agents; run from the repository: bench/pdu.py.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils.power.outlets import session, set_outlets  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.power.emulated_pdu import PASSWORD, EmulatedPdu  # noqa: E402

EIGHT = [str(number) for number in range(1, 9)]


def ours(pdu):
    deadline = Deadline(60)
    with session(pdu.name, pdu.settings, pdu.secrets, deadline, str(pdu.folder)) as opened:
        results = set_outlets(opened, dict.fromkeys(EIGHT, "off"), deadline)
    assert all((seen["before"], seen["after"]) == ("on", "off") for seen in results.values())


def fence_apc(pdu):
    argv = ["fence_apc", "-a", "127.0.0.1", "-u", str(pdu.port), "-l", "apc", "-p", PASSWORD, "-n", "3", "-o", "off"]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, timeout=120)


def measure(work, folder, **settings):
    """(seconds, screens) of one run on a fresh PDU whose outlets are all on."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        pdu = EmulatedPdu(Path(own), outlets={number: {"state": "on"} for number in EIGHT}, **settings)
        try:
            start = time.monotonic()
            work(pdu)
            return time.monotonic() - start, pdu.screens
        finally:
            pdu.stop()


def main():
    print(f"{'PDU':34} {'pdu_power, 8 off':>20} {'fence_apc, 1 off':>20}")
    with tempfile.TemporaryDirectory() as folder:
        for dialect in ("menu", "cli"):
            for count in (8, 24):
                for delay in (0, 0.2):
                    row = f"{dialect}, {count} outlets, {delay:g} s a screen"
                    for work in (ours, fence_apc):
                        seconds, screens = measure(work, folder, dialect=dialect, outlet_count=count, delay=delay)
                        row = f"{row:34} {seconds:7.2f} s {screens:3} screens"
                    print(row, flush=True)


if __name__ == "__main__":
    main()
