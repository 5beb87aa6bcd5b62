# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sushy-tools' emulator with a driver that really starts and stops a machine. It takes the emulator's own options.

All of its systems are one machine, that of the program in MACHINE (servers.py). A boot device holds for one start.
"""

from __future__ import annotations

import os
import subprocess
import sys

from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver


def machine(*words):
    return subprocess.run([os.environ["MACHINE"], *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Driver(FakeDriver):
    """Sushy-tools' own driver of systems that are not there, with one that is."""

    def get_power_state(self, identity):
        return "On" if machine("state") == "on" else "Off"

    def set_power_state(self, identity, state):
        machine("on" if "On" in state else "off")

    def set_boot_device(self, identity, boot_source):
        machine("next", "n" if boot_source == "Pxe" else "c")


if __name__ == "__main__":
    main.fakedriver.FakeDriver = Driver
    sys.exit(main.main())
