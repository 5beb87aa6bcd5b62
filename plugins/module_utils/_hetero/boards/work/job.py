# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on boards that goes on by itself: which events tell of it."""

from __future__ import annotations

from ...core import job
from ..records.proxy import Proxy


def in_background(module, params, boards, limit, work):
    """As job.in_background.

    :param boards: ids whose events tell of the work; a callable gets the Proxy.
    :param limit: the longest the work can take, by the number of boards.
    :param work: takes the parameters; returns the module's result.
    """

    def prepare():
        with Proxy(params) as proxy:
            ids = [proxy.board(board).id for board in boards(proxy)]
            newest = [event.id for board in ids for event in proxy.store.newest_events(board, 1)]
            follow = dict(state_db=params["state_db"], boards=ids, after=max(newest, default=0), limit=limit(len(ids)))
            return proxy.config["run_folder"], follow

    job.in_background(module, prepare, lambda: work(params))
