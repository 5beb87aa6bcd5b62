# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long 100 PDUs take to switch 8 outlets each and read them back, beside one: `bench/pdus.py [PDUS]`.

From the root folder. All are the lab's emulated PDU (AOS 5, 0.2 s a screen), a process each, on the processors that we
use ourselves: what they need of these is in what is measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record  # noqa: E402

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session, set_outlets  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu  # noqa: E402

EIGHT = [str(number) for number in range(1, 9)]
SLOW, MOST, LIMIT = 0.2, 2.0, 280


def switched(pdu):
    deadline = Deadline(LIMIT)
    with session(pdu.name, pdu.settings, pdu.secrets, deadline, str(pdu.folder)) as opened:
        results = set_outlets(opened, dict.fromkeys(EIGHT, "on"), deadline)
    assert {seen["after"] for seen in results.values()} == {"on"}, (pdu.name, results)


def timed(pdus):
    """Seconds until all of them are done, side by side."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(pdus)) as threads:
        list(threads.map(switched, pdus))
    return time.monotonic() - began


def main(number):
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        pdus = []
        for count in range(number + 1):
            own = Path(folder, str(count))
            own.mkdir()
            pdus.append(EmulatedPdu(own, name=f"pdu-{count}", dialect="cli", outlet_count=24, delay=SLOW))
            stack.callback(pdus[-1].stop)
        one, all_of_them = timed(pdus[:1]), timed(pdus[1:])
    print(f"8 outlets of 1 PDU {one:.2f} s, of {number} PDUs {all_of_them:.2f} s", flush=True)
    record("100 PDUs, 8 outlets each, times one", f"{all_of_them / one:.1f}", all_of_them <= MOST * one)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100)
