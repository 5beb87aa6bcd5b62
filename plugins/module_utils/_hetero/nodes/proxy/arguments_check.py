# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments for kernels that no kernel would get: `cmdline` of boards, or of their RAM images, where the boards' driver
passes none. Requests for such boards are refused (images/delivery.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...core.errors import HeteroError
from ...drivers.boot.registry import DRIVERS, default_driver
from ...images.store import ImageStore
from ...site.proxy_config import NO_DISK

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...drivers.boot.driver import BootDriver
    from ...site.boards_file import Board
    from .setup_plan import Plan


def undelivered(
    plan: Plan,
    boards: Sequence[Board],
    wires: Mapping[str, Mapping[str, Any]],
    found: Findings,
    drivers: Mapping[str, type[BootDriver]] = DRIVERS,
) -> None:
    """Report a defect for each board whose wiring has arguments that its driver does not pass, and a note for each RAM
    image of such boards that has some.

    :param drivers: all that there are, a site's own among them.
    """
    wiped: dict[str, list[str]] = {}
    ram_images = {str(arch).lower(): name for arch, name in plan.ram_images.items()}
    for board in boards:
        wire = wires.get(str(board.id), {})
        driver = drivers.get(wire.get("driver") or default_driver(board))
        if driver is None or driver.passes_arguments:
            continue
        if wire.get("cmdline"):
            what = f"has cmdline, and boot driver {driver.name} passes no arguments to the kernel"
            remedy = "build them into a kernel of its own (kernel.d/N in its image), and take cmdline out"
            found.defect(f"tftp_proxy_boards, board {board.id}", what, remedy)
        if wire.get("disk") not in (None, "", NO_DISK, []):
            name = ram_images.get(str(board.arch).lower())
            if isinstance(name, str):  # settings_check.py names those that are none, or not there
                wiped.setdefault(name, []).append(f"{board.name} ({driver.name})")
    for name, whose in sorted(wiped.items()):
        try:
            image = ImageStore(os.path.join(plan.state_folder, "images")).get(name)
        except HeteroError:
            continue
        if image.cmdline:
            what = f"{name} has arguments for the kernel (cmdline), which no driver passes to {', '.join(whose)}"
            remedy = "build them into its kernel, and take cmdline out of its image.json"
            found.note("tftp_proxy_ram_images", what, remedy)
