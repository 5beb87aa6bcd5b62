# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a node what it has, by module board_info on a proxy node and host_info on a compute host: one task for both.
Who watches an instance is told what happens to it as the node writes it down (watch).
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from typing import Any, Iterable, Mapping

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.job_watch import SHOWN, SHOWN_OF_INSTANCES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BOARD
from ansible_collections.hetero.compute.plugins.plugin_utils import asks
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import packed
from ansible_collections.hetero.compute.plugins.plugin_utils.instance_watch import Line, Watched
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import (
    LONGEST_LOOK,
    SHORTEST_LOOK,
    Lines,
    Looks,
    Silent,
    as_text,
    within,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import is_read

#: What a node is → the module that says what it has.
MODULES = {"proxy": "board_info", "host": "host_info"}
#: What Ansible reads of a result itself, beside what the node has.
ANSIBLES_OWN = ("ansible_facts", "deprecations", "invocation", "warnings")
#: Seconds in which a node says what it has, where nothing else is said.
ANSWER_TIME = 120
LATE = "Timed out after {seconds} second(s)."
#: Most seconds for which somebody watches, and for which nothing happens meanwhile.
LONGEST = 86400.0
STILL, LONG = "nothing has happened for {limit:.0f} s", "it was watched for {limit:.0f} s"
NOBODY = "nobody reads any more what is told of it"


def _kind(task_vars: Mapping[str, Any]) -> str:
    """Return what a node is by the inventory's groups."""
    proxies = (task_vars.get("groups") or {}).get(BOARD.group) or ()
    return "proxy" if task_vars.get("inventory_hostname") in proxies else "host"


class ActionModule(Looks):
    """The call of the node's own module. No lines are shown: the modules have none, so they would be a liar's."""

    @property
    def module(self) -> str:
        return f"hetero.compute.{MODULES[self._node]}"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # Its module has no such options.
        given, known = self._task.args, task_vars or {}
        self._node = str(given.pop("node", None) or _kind(known))
        asks.spread(given)
        given.update(self._value_of(given.pop("asks_in", None), known, {}))
        longest, is_packed = self._seconds(given.pop("limit_in", None), known), boolean(given.pop("packed", False))
        watch = given.pop("watch", None)
        if self._node not in MODULES:
            raise AnsibleActionFail(f"node is {brief(self._node)}: give {' or '.join(MODULES)}")
        try:
            self._limit = None if watch is None else float(watch)
        except (TypeError, ValueError):
            self._limit = -1.0
        if self._limit is not None and not 0 < self._limit <= LONGEST:
            raise AnsibleActionFail(f"watch is {brief(str(watch))}: give seconds, at most {LONGEST:g}")
        if self._limit is not None:
            self._task.args["follow"] = True
            is_read()  # from here on it is known when its reader goes
        try:
            with within(longest) if longest else nullcontext():
                answer = super().run(tmp, task_vars)
        except Silent:
            # Ansible would remove it by the same connection, and wait for good
            self._connection._shell.tmpdir = None
            return dict(failed=True, changed=False, msg=LATE.format(seconds=longest), timedout=dict(period=longest))
        if not is_packed or answer.get("failed") or answer.get("unreachable"):
            return answer
        own = {key: answer.pop(key) for key in ANSIBLES_OWN if key in answer}
        return dict(own, changed=False, **packed(answer))

    def _value_of(self, variable: str | None, known: Mapping[str, Any], nothing: Any) -> Any:
        """Return what a variable of the play says; `nothing` where none is named, or it has no value."""
        given = known.get(variable) if variable else None
        return nothing if given is None else self._templar.template(given)

    def _seconds(self, variable: str | None, known: Mapping[str, Any]) -> int:
        """Return the seconds that a variable gives the node to answer, ANSWER_TIME where it has none; 0 is no limit."""
        given = self._value_of(variable, known, ANSWER_TIME) if variable else 0
        try:
            seconds = int(given)
        except (TypeError, ValueError, OverflowError):
            seconds = -1
        if isinstance(given, bool) or seconds < 0:
            raise AnsibleActionFail(f"{variable} is {brief(str(given))}: give whole seconds, 0 for no limit")
        return min(seconds, int(LONGEST))

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        answer = super()._asked(tmp, task_vars)
        return answer if self._limit is None else self._watched(answer, self._limit, task_vars)

    def _watched(self, answer: dict[str, Any], limit: float, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Print what happens to the instances that are asked for, until they are settled, or nothing happens any more;
        return the last answer, with how they stand then.
        """
        self._began = time.monotonic()
        request, module = str(self._task.args["instance"]), self.module.rpartition(".")[2]
        seen = Watched(request, self._began)
        self._lines = Lines(f"{(task_vars or {}).get('inventory_hostname')}: watch of {request}")
        fails = False
        while True:
            answer = checked(answer, module)
            if answer.get("failed") or answer.get("unreachable"):
                return answer
            self._tell(seen.look(answer, time.monotonic()))
            if seen.settled(time.monotonic()):
                return dict(answer, watched=seen.parts)
            try:
                note = self._follow(seen, answer["follow"], limit)
                fails = False
            except AnsibleActionFail:  # such as of a database that was moved away, which the node tells by itself
                if fails:
                    raise
                note, fails = "", True
            if note:
                return dict(answer, watched=[dict(one, note=note) for one in seen.parts])
            answer = self._execute_module(task_vars=task_vars)  # with all that the node says of them

    def _follow(self, seen: Watched, follow: dict[str, Any], limit: float) -> str:
        """Print what happens until they seem settled; return "", or why that is not waited for any longer."""
        shown = SHOWN_OF_INSTANCES if "node" in follow else SHOWN
        follow, play = dict(follow, request=self._task.args["instance"], mark=None), os.getppid()
        while True:
            now = time.monotonic()
            if now - self._began >= LONGEST:
                return LONG.format(limit=LONGEST)
            if seen.quiet(now) >= limit:
                return STILL.format(limit=limit)
            if seen.settled(now):
                return ""
            if os.getppid() != play or not is_read():
                return NOBODY
            rest = min(seen.rest(now), limit - seen.quiet(now), LONGEST_LOOK, self._silence / 2)
            news = self._look(dict(follow, wait=max(SHORTEST_LOOK, rest)), self._lines)
            follow.update(mark=news["mark"], after=max([follow["after"], *(event[0] for event in news["events"])]))
            self._tell(seen.hear(news, shown, time.monotonic()))

    def _tell(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._lines.tell(as_text(line))
