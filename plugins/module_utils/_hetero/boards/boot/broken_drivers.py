# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards whose boot driver, a site's own, made a mistake on them: they are left as they are, and other boards go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...drivers.boot.blame import PROXY
from ...drivers.boot.own_drivers import fault_of

if TYPE_CHECKING:
    from ..work.board_work import BoardWork


def is_broken(work: BoardWork) -> bool:
    """Return whether the driver made a mistake on the board; where it did, the work on the board fails."""
    fault = fault_of(work.driver, work.board)
    if fault is not None and not work.over:
        work.say("error", f"the board is left as it is: {fault}")
        work.fail(PROXY, fault)
    return fault is not None


def tell(work: BoardWork) -> None:
    """Say of a board on which all went well that its driver made a mistake meanwhile."""
    fault = None if work.failed or work.change.check else fault_of(work.driver, work.board)
    if fault is not None:
        work.line("error", str(fault))
