# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to switch a machine off and on by its BMC, beside the fence agent doing so, in turns.

Both read back. By Redfish the BMC is sushy-tools' emulator, by IPMI OpenIPMI's ipmi_sim. Needs what `tools/setup test`
puts in; run from the repository: bench/bmc.py.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record, turns  # noqa: E402

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session, set_outlets  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.power import emulated_redfish as redfish  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import SimulatedBmc  # noqa: E402

#: Off and on again are one turn of each.
TURNS = 5
#: Runs the emulator with machines that need two seconds for each order. It draws their time by lot, from 1 to 11 s,
#: and whose orders had the longer ones was what was measured.
EMULATOR = """
import random, sys
random.randint = lambda least, most: 2
from sushy_tools.emulator.main import main
sys.exit(main())
"""
#: Seconds that one order may take, with its reading back.
LIMIT = 120.0


def ours(folder, settings, secrets, outlet):
    def switch(state):
        deadline = Deadline(LIMIT)
        with session("bmc", settings, secrets, deadline, str(folder)) as opened:
            seen = set_outlets(opened, {outlet: state}, deadline)[outlet]
        assert seen["after"] == state, seen

    return switch


def agents(fence):
    def switch(state):
        code, said = fence(state)
        assert code == 0, said

    return switch


def measure(goal, what, ways):
    """Switch in turns; the median of each way's seconds for an order."""
    seconds = {name: [] for name, _way in ways}
    ways[0][1]("on")
    for _turn in range(turns(TURNS)):
        for name, way in ways:
            for state in ("off", "on"):
                start = time.monotonic()
                way(state)
                seconds[name].append(time.monotonic() - start)
    medians = [statistics.median(seconds[name]) for name, _way in ways]
    shown = ", ".join(f"{name} {median:.2f} s" for (name, _way), median in zip(ways, medians))
    print(f"{what:40} {shown}", flush=True)
    record(goal, f"{medians[0]:.2f} s beside {medians[1]:.2f} s", medians[0] < medians[1])


def by_redfish(folder):
    outlet = redfish.NODES[0]
    program = folder / "emulator.py"
    program.write_text(EMULATOR)
    with redfish.emulated_redfish(folder, program=program) as settings:
        path = f"/redfish/v1/Systems/{outlet}"
        fence = agents(lambda state: redfish.fence(settings["port"], path, state, redfish.SECRETS))
        ways = [("redfish", ours(folder, settings, redfish.SECRETS, outlet)), ("fence_redfish", fence)]
        measure("redfish, a machine off or on", "Redfish, sushy-tools' emulator", ways)


def by_ipmi(folder):
    bmc = SimulatedBmc(folder)
    try:
        settings = {"driver": "ipmi", "host": bmc.address, "port": bmc.port, "cipher_suite": 3}
        ways = [("ipmi", ours(folder, settings, bmc.secrets, "1")), ("fence_ipmilan", agents(bmc.fence))]
        measure("ipmi, a machine off or on", "IPMI, OpenIPMI's ipmi_sim", ways)
    finally:
        bmc.stop()


def main():
    for way in (by_redfish, by_ipmi):
        with tempfile.TemporaryDirectory() as folder:
            way(Path(folder))


if __name__ == "__main__":
    main()
