# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module whose work goes on in the background and is followed by its events; background.py forks the worker, and the
caller writes the events.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any, Callable, NoReturn

from . import askers
from .background import detach, finish
from .errors import HeteroError, naming_limits
from .job_watch import look
from .module import Module, checked, failed
from .printable import printable, printable_data
from .this_node import THIS_NODE


def in_background(
    module: Module, prepare: Callable[[], tuple[str, dict[str, Any]]], work: Callable[[], dict[str, Any]]
) -> NoReturn:
    """Fork; end the module's process with the job to follow and a first look at it, and the worker with its result.

    :param prepare: returns (run folder, what following.look is to know besides the job), with the longest the work can
        take as its `limit`.
    :param work: takes nothing; returns the module's result.
    """
    try:
        checked(module.params)
        with naming_limits(THIS_NODE):
            run_folder, follow = prepare()
            job = detach(run_folder)
        if job:
            path, worker = job
            follow = dict(follow, job=path, worker=worker, python=sys.executable)
            module.exit_json(changed=False, follow=follow, news=look(follow))
    except HeteroError as error:
        module.fail_json(**failed(error, module.params))
    askers.asked_by(askers.Follower())
    try:
        with naming_limits(THIS_NODE):
            result = work()
        finish(printable_data(result))
    except HeteroError as error:
        finish(failed(error, module.params))
    except Exception as error:  # noqa: BLE001 - a play that follows gets a message, and the traceback for a report
        what = f"a fault of this collection ended the work: {type(error).__name__}: {error}"
        remedy = "run this again; if it comes again, report it with what -vvv shows"
        finish(dict(failed=True, msg=printable(f"{what}: {remedy}"), exception=printable(traceback.format_exc())))
