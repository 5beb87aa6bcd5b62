# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to turn 8 outlets off and read them back, beside fence_apc and pdudaemon doing so with one.

Screens are counted. All talk to the lab's emulated PDU in one run. Needs what `tools/setup test` puts in; run from the
repository: bench/pdu.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils.power.outlets import session, set_outlets  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.power import test_foreign_clients as foreign  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.power.emulated_pdu import EmulatedPdu  # noqa: E402

EIGHT = [str(number) for number in range(1, 9)]
#: What the PDU speaks, how many outlets it has, what we are set to, which driver pdudaemon needs.
PDUS = [
    ("menu", 8, {}, "apc7952"),
    ("menu", 24, {}, "apc7952"),
    ("menu", 24, {"command_line": True}, None),
    ("menu2", 24, {}, "apc7900"),
    ("menu-user", 24, {}, None),
    ("cli", 24, {}, "apc8959"),
]


def ours(pdu, settings):
    deadline = Deadline(60)
    with session(pdu.name, {**pdu.settings, **settings}, pdu.secrets, deadline, str(pdu.folder)) as opened:
        results = set_outlets(opened, dict.fromkeys(EIGHT, "off"), deadline)
    assert all((seen["before"], seen["after"]) == ("on", "off") for seen in results.values())


def fence_apc(pdu, _settings):
    code, text = foreign.fence(pdu, "off")
    assert code == 0, text


def pdudaemon(driver):
    def work(pdu, _settings):
        text = foreign.pdudaemon(pdu, driver, "off")
        assert pdu.outlets["3"]["state"] == "off", text

    return work


def measure(folder, work, settings, **pdu_settings):
    """Seconds and screens of one run on a fresh PDU whose first 8 outlets are on."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        pdu = EmulatedPdu(Path(own), outlets={number: {"state": "on"} for number in EIGHT}, **pdu_settings)
        try:
            start = time.monotonic()
            work(pdu, settings)
            return f"{time.monotonic() - start:7.2f} s {pdu.screens:3} screens"
        finally:
            pdu.stop()


def main():
    print(f"{'PDU':46} {'pdu_power, 8 off':>20} {'fence_apc, 1 off':>20} {'pdudaemon, 1 off':>20}")
    with tempfile.TemporaryDirectory() as folder:
        for dialect, count, settings, driver in PDUS:
            for delay in (0, 0.2):
                row = f"{' '.join([dialect, *settings])}, {count} outlets, {delay:g} s a screen"
                works = [ours]
                if not settings:
                    works += [fence_apc] + ([pdudaemon(driver)] if driver and shutil.which("pdudaemon") else [])
                seen = [
                    measure(folder, work, settings, dialect=dialect, outlet_count=count, delay=delay) for work in works
                ]
                print(f"{row:46} {' '.join(seen)}", flush=True)


if __name__ == "__main__":
    main()
