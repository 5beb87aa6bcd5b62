# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots that nobody needs any more: who ends their instance, or stops it, waits for the board's lock, and asks for it
(core/end_requests.py). A boot that is only waited for is left as it is at once; whoever asked stops the board.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable

from ...core import end_requests
from ...core.errors import Refused
from ..power.pdu_loop import PduLoop
from ..work.cut_off_moves import came_by
from .boot_progress import ASKED, BOOTING, DECIDING, LOOKING, QUEUED, Boot

if TYPE_CHECKING:
    from ...core.end_requests import EndRequest
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork

#: Seconds between two looks.
TICK = 0.25
#: Stages in which a board is waited for, and nothing is being switched.
WAITS = (DECIDING, ASKED, BOOTING, QUEUED, LOOKING)
#: What is said of such a boot, and to who asked for it.
ENDED = "{name} is being {word}, so its boot is not waited for any longer"
#: What is said of a boot of a board that nobody has.
WANTED = "{name} wants it, so its boot is not waited for any longer"
REMEDY = "ask anew where it is still wanted"


class EndedBoots(PduLoop):
    """A loop that follows boots, and lets go of those whose instances are being ended."""

    boots: dict[int, Boot]

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy)
        self._ended = threading.Event()  # the loop has ended

    def _post(self, handler: Callable[..., object], *args: object) -> None:
        """Have a result handled, but not that of a boot that is over by then: its board may be another's already."""
        super()._post(_unless_over, handler, *args)

    def _all_works(self) -> list[BoardWork]:
        return [boot.work for boot in self.boots.values()]

    def _listen_for_ends(self) -> None:
        """Look whether anybody asks for the boards of this loop, until it ends."""
        boots = {name: boot for boot in self.boots.values() if boot.work.may_be_ended for name in _places(boot.work)}
        while boots and not self._ended.wait(TICK):
            for name in end_requests.names(self.proxy.config.run_folder) & boots.keys():
                boot = boots[name]
                asked = None if boot.work.over else end_requests.of(self.proxy.config.run_folder, name)
                if asked and not (asked.stays and name != boot.board.name):
                    self._post(self._on_end_request, boot, asked)

    @staticmethod
    def _on_end_request(boot: Boot, asked: EndRequest) -> None:
        work, claim = boot.work, boot.work.claim
        if work.over or boot.stage not in WAITS:
            return
        if work.gives_way and claim is None:
            boot.cancelled.set()
            boot.has_power.set()
            work.fail(None, Refused(WANTED.format(name=asked.instance), boot.board.name, REMEDY), ends=asked.instance)
            return
        if claim is None or not _is_meant(claim, asked):
            return
        boot.cancelled.set()
        boot.has_power.set()
        _let_go(work, boot.board.name, asked)


def _unless_over(handler: Callable[..., object], *args: object) -> None:
    boot = args[0] if args else None
    if not (isinstance(boot, Boot) and boot.work.over):
        handler(*args)


def refuse_ending(work: BoardWork) -> None:
    """End the work on a board, whose lock is held, where somebody waits for it to end the instance: who asks again and
    again for boots would else keep the instance from its end.
    """
    claim = work.claim
    for name in _places(work) if claim else ():
        asked = end_requests.of(work.proxy.config.run_folder, name)
        if claim and asked and not asked.stays and _is_meant(claim, asked):
            _let_go(work, work.board.name, asked)
            return


def _places(work: BoardWork) -> list[str]:
    """Return the names of the boards at which the end of an instance may be asked for: also that which it has left."""
    before = came_by(work.proxy, work.claim) if work.claim else None
    return [work.board.name, *([before] if before else [])]


def _let_go(work: BoardWork, board_name: str, asked: EndRequest) -> None:
    said = ENDED.format(name=work.instance, word="stopped" if asked.stays else "ended")
    work.say("wait", said)
    gone = {} if asked.stays else {end_requests.BEING_ENDED: True}
    work.fail(None, Refused(said, board_name, REMEDY), **gone)


def _is_meant(claim: Claim, asked: EndRequest) -> bool:
    named = asked.instance in (claim.instance, claim.request)
    return named and (not asked.created or claim.created in asked.created)
