# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a request for an instance ended, in a file for programs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: outcome
type: aggregate
short_description: How a request for an instance ended, in a file for programs
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Writes a file of JSON at the end of a playbook, by which a CI tells a board that did not boot from a test that
    failed. The programs in C(extensions/ci) go by it.
  - C(ending) is C(given); C(request) where it can never be given as it was asked for; C(none) where no node was free in
    time; C(boot) where a node could not bring it up; C(owner) where a node could not be asked or was lost on the way;
    C(other) where the controller failed.
  - C(text) says why, C(blame) whose fault a boot was, C(console) the last lines of the board's console, and
    C(instances) what was given.
options:
  path:
    description: The file. Without it, nothing is written.
    type: path
    env:
      - name: HETERO_OUTCOME
requirements:
  - named in C(callbacks_enabled) of ansible.cfg, or in the environment variable C(ANSIBLE_CALLBACKS_ENABLED)
"""

import json

from ansible.plugins.callback import CallbackBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import write_whole
from ansible_collections.hetero.compute.plugins.plugin_utils import endings
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import words_of

#: What actions of this collection begin with; the two that say how a request ended.
OWN = "hetero.compute."
STEP = "hetero.compute.request"
NODE = "hetero.compute.instance"
#: The one by which a verb ends; that a node did not do its part (undone) is said by the node before.
END = "hetero.compute.hand_over"


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hetero.compute.outcome"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._asked = False  # whether anything was asked of a node
        self._plan = None  # how the last step of a request says that it would end
        self._failures, self._lost = [], []  # (ending, result) of failures, and of nodes that were not reached

    def v2_runner_on_ok(self, result):
        if _task(result).action == STEP:
            self._asked, self._plan = True, _data(result).get("ending")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self._failures.append((self._ending(_task(result).action, _data(result)), _data(result)))

    def v2_runner_on_unreachable(self, result):
        self._lost.append((endings.OWNER, _data(result)))

    def _ending(self, action, data):
        """Return how a task that failed ends the request; None where another failure, before it, says how."""
        if action == STEP:
            return data.get("ending") or endings.of_node(data)
        if action == NODE:
            return endings.of_node(data)
        if action.startswith(OWN) and not (action == END and data.get("undone")):
            return endings.OTHER
        # what a play says by itself
        if not self._asked:
            return endings.REQUEST
        return None if self._plan in (None, endings.GIVEN) else self._plan

    def v2_playbook_on_stats(self, stats):
        path = self.get_option("path")
        if path:
            instances = stats.custom.get("_run", {}).get("hetero_instances", [])
            text = json.dumps(dict(self._outcome(stats), instances=instances), default=str)
            write_whole(path, text, 0o600, lasting=False)

    def _outcome(self, stats):
        if not any(stats.summarize(host)[key] for host in stats.processed for key in ("failures", "unreachable")):
            return dict(ending=endings.GIVEN, text="", blame=None, console=[])
        known = [one for one in self._failures if one[0]] or self._lost or self._failures or [(None, {})]
        ending, data = known[0]
        boards = [board for board in data.get("instances") or () if isinstance(board, dict)]
        tails = [(board.get("evidence") or {}).get("console_tail") for board in boards]
        return dict(
            ending=ending or endings.OTHER,
            text=words_of(data),
            blame=data.get("blame"),
            console=next(filter(None, tails), []),
        )


def _data(result):
    """Return a result's values; their name lost its underscore in ansible-core 2.19."""
    return result.result if hasattr(result, "result") else result._result


def _task(result):
    return result.task if hasattr(result, "task") else result._task
