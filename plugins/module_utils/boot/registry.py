# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot drivers by name. A new one is a file here, a test file, and its line below.

The imports are static, since Ansible ships only what it sees imported.
"""

from __future__ import annotations

from ..errors import BadInput
from .fake import Fake
from .pxe import Pxe
from .uboot import Uboot

DRIVERS = {driver.name: driver for driver in (Pxe, Uboot, Fake)}
#: The driver of a board whose wiring names none.
DEFAULT = "pxe"


class BootDrivers:
    """One object a driver for a call; boards of one driver share it.

    :param wanted: a driver's name for all boards, or "auto" for what each board's wiring says.
    """

    def __init__(self, proxy, wanted="auto"):
        self._proxy = proxy
        self._wanted = wanted
        self._made = {}

    def of(self, board):
        """The driver of a board; BadInput where its wiring names one that is not there."""
        name = self._wanted if self._wanted != "auto" else self._proxy.wiring(board).get("driver", DEFAULT)
        if name not in DRIVERS:
            known = ", ".join(sorted(DRIVERS))
            raise BadInput(f"no such boot driver: {name} (known: {known})", board.name, "name another in proxy_boards")
        if name not in self._made:
            self._made[name] = DRIVERS[name](self._proxy)
        return self._made[name]
