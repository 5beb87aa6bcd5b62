# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on boards whose work goes on in the background, followed by the events of these boards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NoReturn, Sequence

from ...core import job
from ..records.proxy import Proxy

if TYPE_CHECKING:
    from ...core.module import Module


def in_background(
    module: Module,
    params: dict[str, Any],
    boards: Callable[[Proxy], Sequence[int]],
    limit: Callable[[int], float],
    work: Callable[[dict[str, Any]], dict[str, Any]],
) -> NoReturn:
    """Do the work in the background (core/job.py's in_background).

    :param boards: returns the ids of the boards whose events tell of the work; none where events of no board do.
    :param limit: takes the number of boards, returns the most seconds that the work can take.
    :param work: takes the parameters; returns the module's result.
    """

    def prepare() -> tuple[str, dict[str, Any]]:
        with Proxy(params) as proxy:
            ids = [proxy.board(board).id for board in boards(proxy)]
            whose: list[int | None] = [*ids] or [None]
            newest = [event.id for board in whose for event in proxy.store.newest_events(board, 1)]
            follow = dict(state_db=params["state_db"], boards=ids, after=max(newest, default=0), limit=limit(len(ids)))
            return proxy.config.run_folder, follow

    job.in_background(module, prepare, lambda: work(params))
