# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules whose work takes long: in the background where the action plugin asks for it, with the job to follow."""

from __future__ import annotations

import sys

from .background import detach, finish
from .boards.proxy import Proxy
from .errors import HeteroError
from .following import look
from .module import run, utf8


def run_followed(module, work, limit):
    """Run `work(params, check)` as `module.run` does, or in the background (option `background`).

    :param limit: from the parameters, how long the work may take at most (seconds).
    """
    if not module.params["background"] or module.check_mode:
        run(module, work)
    try:
        _go_on_alone(module, limit)
    except HeteroError as error:
        module.fail_json(msg=str(error), failure=error.failure)
    try:
        finish(work(module.params, False))
    except HeteroError as error:
        finish(dict(failed=True, msg=str(error), failure=error.failure))


def _go_on_alone(module, limit):
    """The module's process ends here, with the job to follow and a first look at it; what returns is the worker."""
    params = utf8(module.params)
    with Proxy(params) as proxy:
        newest = [event.id for board in params["boards"] for event in proxy.store.newest_events(board, 1)]
        after, run_folder = max(newest, default=0), proxy.config["run_folder"]
    job = detach(run_folder)
    if job:
        follow = dict(job=job, state_db=params["state_db"], boards=params["boards"], after=after)
        follow.update(python=sys.executable, limit=limit(params))
        module.exit_json(changed=False, follow=follow, news=look(follow))
