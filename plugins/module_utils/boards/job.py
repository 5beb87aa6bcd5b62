# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on boards that goes on by itself and is followed by its events; the forking is background.py's."""

from __future__ import annotations

import sys

from ..background import detach, finish
from ..errors import HeteroError
from ..following import look
from .proxy import Proxy


def in_background(module, params, boards, limit, work):
    """The module's process ends here, with the job to follow and a first look at it; the worker ends with its result.

    :param module: an AnsibleModule.
    :param boards: ids whose events tell of the work; a callable gets the Proxy.
    :param limit: the longest the work can take, by the number of boards.
    :param work: takes the parameters; returns the module's result.
    """
    try:
        with Proxy(params) as proxy:
            ids = boards(proxy)
            newest = [event.id for board in ids for event in proxy.store.newest_events(board, 1)]
            after, run_folder = max(newest, default=0), proxy.config["run_folder"]
        job = detach(run_folder)
        if job:
            follow = dict(job=job, state_db=params["state_db"], boards=ids, after=after)
            follow.update(python=sys.executable, limit=limit(len(ids)))
            module.exit_json(changed=False, follow=follow, news=look(follow))
    except HeteroError as error:
        module.fail_json(msg=str(error), failure=error.failure)
    try:
        finish(work(params))
    except HeteroError as error:
        finish(dict(failed=True, msg=str(error), failure=error.failure))
