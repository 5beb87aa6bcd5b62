# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to turn 8 outlets off and read them back, beside fence_apc and pdudaemon doing so with one.

Ours is a PDU that was switched before: which dialect it obeys is known. AOS 2 has no command line, and is measured by
outlet. Screens and logins are counted. All talk to the lab's emulated PDU in one run. Needs what `tools/setup test`
puts in; run from the repository: bench/pdu.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record  # noqa: E402

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session, set_outlets  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.power import test_foreign_clients as foreign  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu  # noqa: E402

EIGHT = [str(number) for number in range(1, 9)]
#: What the PDU speaks, how many outlets it has, what we are set to, which driver pdudaemon needs, the two goals: with a
#: PDU that answers at once, and with one that takes SLOW seconds a screen.
SLOW = 0.2
#: The dialect that takes some seven screens for each outlet.
BY_OUTLET = "menu2"
PDUS = [
    ("menu", 8, {}, "apc7952", "pdu_power, 8 outlets, menus that end there", "the same, 0.2 s a screen"),
    (
        *("menu", 24, {}, "apc7952"),
        *("pdu_power, 8 of 24 outlets, menus of AOS 3", "the same of AOS 3, 0.2 s a screen"),
    ),
    (
        *("menu", 24, {"command_line": True}, None),
        *("pdu_power, 8 of 24 outlets, menus of AOS 3, command_line", "the same with command_line, 0.2 s a screen"),
    ),
    (
        *("menu2", 24, {}, "apc7900"),
        *("pdu_power, 8 of 24 outlets, menus of AOS 2", "the same of AOS 2, 0.2 s a screen"),
    ),
    (
        *("menu-user", 24, {}, None),
        *("pdu_power, 8 of 24 outlets, a lesser account of AOS 3", "the same of that account, 0.2 s a screen"),
    ),
    (
        *("cli", 24, {}, "apc8959"),
        *("pdu_power, 8 of 24 outlets, command line of AOS 5", "the same of AOS 5, 0.2 s a screen"),
    ),
]


def ours(pdu, settings, state="off"):
    deadline = Deadline(120)
    with session(pdu.name, {**pdu.settings, **settings}, pdu.secrets, deadline, str(pdu.folder)) as opened:
        results = set_outlets(opened, dict.fromkeys(EIGHT, state), deadline)
    assert all(seen["after"] == state for seen in results.values())


def met_before(pdu, settings):
    """Have the PDU known, as it is since its first request after the node's start."""
    ours(pdu, settings)
    ours(pdu, settings, "on")


def fence_apc(pdu, _settings):
    code, text = foreign.fence(pdu, "off")
    assert code == 0, text


def pdudaemon(driver):
    def work(pdu, _settings):
        text = foreign.pdudaemon(pdu, driver, "off")
        assert pdu.outlets["3"]["state"] == "off", text

    return work


def measure(folder, work, settings, **pdu_settings):
    """(seconds, screens, logins) of one run on a fresh PDU whose first 8 outlets are on."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        pdu = EmulatedPdu(Path(own), outlets={number: {"state": "on"} for number in EIGHT}, **pdu_settings)
        try:
            if work is ours:
                met_before(pdu, settings)
            screens, logins, start = pdu.screens, pdu.logins, time.monotonic()
            work(pdu, settings)
            return time.monotonic() - start, pdu.screens - screens, pdu.logins - logins
        finally:
            pdu.stop()


def main():
    print(f"{'PDU':46} {'pdu_power, 8 off':>26} {'fence_apc, 1 off':>26} {'pdudaemon, 1 off':>26}", flush=True)
    logins = {}
    with tempfile.TemporaryDirectory() as folder:
        for dialect, count, settings, driver, *goals in PDUS:
            for delay, goal in zip((0, SLOW), goals):
                row = f"{' '.join([dialect, *settings])}, {count} outlets, {delay:g} s a screen"
                print(f"{row:46}", end="", flush=True)
                works = [ours, fence_apc]
                if driver and shutil.which("pdudaemon"):
                    works.append(pdudaemon(driver))
                seen = []
                for work in works:
                    given = {"dialect": dialect, "outlet_count": count, "delay": delay}
                    seen.append(measure(folder, work, settings, **given))
                    print("{:9.2f} s {:3} scr. {} log.".format(*seen[-1]), end="", flush=True)
                print(flush=True)
                we, other = seen[0], seen[1]
                mine = we[0] / len(EIGHT) if dialect == BY_OUTLET else we[0]
                measured = f"{mine:.2f} s{' an outlet' if dialect == BY_OUTLET else ''} beside {other[0]:.2f} s"
                record(goal, f"{measured}, {we[2]} login{'s' if we[2] > 1 else ''}", mine < other[0])
                logins.setdefault(we[2], []).append(row.split(",")[0])
    most = max(logins)
    record(
        "pdu_power, logins for 8 outlets",
        str(most) if most == 1 else f"1; {most}: {', '.join(dict.fromkeys(logins[most]))}",
        most == 1,
    )


if __name__ == "__main__":
    main()
