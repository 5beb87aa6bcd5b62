# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards of a loop by their wiring: whom an answer of a PDU is about, and whether a PDU is still needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Sequence

from ..power.by_outlet import ByOutlet
from ..power.pdu_loop import PduLoop
from .boot_progress import ASKED, BOOTING, QUEUED

if TYPE_CHECKING:
    from ..work.board_work import BoardWork
    from .boot_progress import Boot

#: Stages in which a board asks nothing of its PDU.
WITHOUT_PDU = (ASKED, BOOTING, QUEUED)


class WiredBoots(PduLoop):
    """A loop that looks up its boards by PDU and outlet, as they were wired when it first did so."""

    boots: dict[int, Boot]

    def _asking(self, pdu: str) -> list[BoardWork]:
        return [boot.work for boot in self._of(pdu) if _may_ask(boot)]

    def _asks(self, pdu: str) -> bool:
        return self._outlets.any(pdu, _may_ask)

    def _of(self, pdu: str, outlet: str | None = None) -> Sequence[Boot]:
        return self._outlets.of(pdu, outlet)

    @cached_property
    def _outlets(self) -> ByOutlet[Boot]:
        return ByOutlet(self.boots.values(), lambda boot: (boot.work.pdu, boot.work.outlet))


def _may_ask(boot: Boot) -> bool:
    return boot.stage not in WITHOUT_PDU and not boot.work.over
