# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards: stop them, remove what they boot from, wipe their disks, check that nothing is left, end their claims.

The playbook terminate_instance runs the same steps as separate modules, so that a person sees each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Sequence

from ...core.errors import HeteroError, naming
from ...roots.provision import remove
from ..disk.wipes import wipe_beside
from ..evidence.free_boards import give_back, is_left_on
from ..records.disk_records import unwiped
from .lifecycle import switch_off

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from .lifecycle import Options


def release(
    proxy: Proxy,
    works: Sequence[BoardWork],
    options: Options,
    later: list[BoardWork] | None = None,
    once_off: Callable[[], object] | None = None,
    freed: Callable[[BoardWork], object] | None = None,
) -> None:
    """Free boards. An error fails only its own work, and a next call goes on there.

    The lock of each board is released as soon as the board is free or its work failed.

    :param works: BoardWork of each board, locked and read; a work that is over is left alone.
    :param later: the works whose boards are off and cleaned, but not wiped, are appended to this list and not freed,
        for a wipe may take hours. With None the disks are wiped now.
    :param once_off: is called once the outlets of these boards were switched off, before anything is removed or wiped.
    :param freed: is called with the work of each board that is free, while the board is still locked.
    """
    works = [work for work in works if not work.over]
    switch_off(proxy, works, replace(options, ends=True))
    if once_off:
        once_off()
    to_wipe = []
    for work in works:
        _do(work, lambda work: remove(proxy, work.board, work.change, work.say))
        if later is not None:
            _do(work, lambda work: later.extend([work] if _is_to_be_wiped(proxy, work) else []))
        if work.failed or work in (later or ()):
            work.let_go()
        else:
            to_wipe.append(work)

    def free(work: BoardWork) -> None:
        _do(work, lambda work: _give_back(proxy, work))
        if freed:
            _do(work, freed)
        work.let_go()

    wipe_beside(proxy, to_wipe, options, free)


def _do(work: BoardWork, step: Callable[[BoardWork], object]) -> None:
    """Do a step of a work that has not failed; the work fails by an error of the step."""
    if not work.failed:
        try:
            with naming(work.board.name):
                step(work)
        except HeteroError as error:
            work.fail(None, error, **error.facts)


def _is_to_be_wiped(proxy: Proxy, work: BoardWork) -> bool:
    return bool(unwiped(proxy, work.board)) and not is_left_on(proxy, work.board, work.claim)


def _give_back(proxy: Proxy, work: BoardWork) -> None:
    claim = work.claim
    if claim:
        work.note(f"{work.board.name} claim", {"instance": claim.instance, "owner": claim.owner}, {})
    if not work.change.check:
        give_back(proxy, work.board, claim, work.board.name, "look what holds it, then run this again", on=True)
        work.record = proxy.store.record(work.board.id)
