# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins that show a module's progress by Ansible's own display, in a terminal and under AWX.

They run a module and check its result, print its lines afterwards, or follow one that goes on in the background by its
events. They do not know the modules and the events themselves.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import shlex
import signal
import time
from typing import Any, Iterable, Iterator

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job_watch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import (
    brief,
    one_line,
    printable,
    printable_data,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import LONGEST, checked, no_answer
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import ShortCalls, TooLong, only_data
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import FIRST, QUIET, tell

#: Seconds that a job may last longer than it announced before it counts as lost.
GRACE = 30.0
#: A look takes 1.5 s (job_watch.LOOK). A node that is silent for so many of Ansible's connection timeouts (10 s each)
#: is asked by a new connection: ssh would wait for hours for one that lost its power or network.
SILENCE = 3
LATER = "What was begun goes on there while it has power. Run this again: it waits for that, or goes on where it was."


class Silent(BaseException):
    """The node did not answer. It is no Exception, because connections that try again catch those."""


class Checks(ShortCalls):
    """Runs the task's module and checks its result (answers.py), because plays compute with it."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        module = self.module.rpartition(".")[2]
        try:
            return checked(self._asked(tmp, task_vars), module)
        except AnsibleError:
            raise
        except TooLong as error:
            return no_answer(module, str(error))
        except Exception as error:  # noqa: BLE001 - of whatever a node says in place of what it should
            return checked(no_answer(module, one_line(brief(repr(error)))), module)

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return super().run(tmp, task_vars)


class ShowsLines(Checks):
    """Prints the `lines` of the module's result, too."""

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super()._asked(tmp, task_vars)
        show(result.get("lines"))
        return result


class Follows(ShowsLines):
    """Starts the module in the background and prints each phase as it happens, until the module ends.

    The module goes on if this process is killed. In check mode nothing takes long, so the module runs as usual.
    """

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        if self._task.check_mode:
            return super()._asked(tmp, task_vars)
        result = ActionBase.run(self, tmp, task_vars)
        started = self._execute_module(module_args=dict(self._task.args, background=True), task_vars=task_vars)
        if "follow" in started:
            result.update(self._follow(started["follow"], started["news"]))
        else:
            result.update(started)  # it failed at once, or there was nothing that takes long
            show(result.get("lines"))
        return result

    def _follow(self, job: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
        """Print events until the job ends; return the module's result."""
        printed = set()
        # Of a compute host's work each step is told when it is done; a board's boot tells what is seen of it.
        told, pause, last = time.monotonic(), FIRST if "node" in job else QUIET, ""
        began, node = told, self._task.delegate_to or self._play_context.remote_addr
        end = time.monotonic() + job["limit"] + GRACE
        while True:
            for number, node, instance, phase, text, seconds in news["events"]:
                job["after"] = number
                text = as_text(dict(instance=instance, node=node, phase=phase, text=text, seconds=seconds))
                printed.add(text)
                tell(text)
                told, last = time.monotonic(), text
            if news["done"]:
                result = outcome(news["result"])
                show(line for line in result.get("lines", ()) if as_text(line) not in printed)
                return result
            if time.monotonic() > end:
                limit = job["limit"] + GRACE
                raise AnsibleActionFail(
                    f"the work in the background has not ended within {limit:.0f} s (job file {job['job']})"
                )
            if time.monotonic() - told >= pause:
                told, pause = time.monotonic(), QUIET
                after = f", since: {' '.join(last.split())}" if last else ""
                tell(f"{node}: {self.module.rpartition('.')[2]} goes on, {told - began:.0f} s so far{after}")
            news = self._look(job)

    def _look(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return what job_watch.look finds on the node.

        Its source goes by standard input if the connection can do that.
        """
        program, by_input = inspect.getsource(job_watch), self._connection.has_pipelining
        words = [job["python"], "-I", "-S"] + (["-"] if by_input else ["-c", program]) + [json.dumps(job)]
        command = " ".join(shlex.quote(word) for word in words)
        said = self._answer(command, program.encode() if by_input else None)
        if said["rc"] != 0:
            why = printable(said.get("stderr") or said.get("stdout") or "nothing").strip().splitlines()[-1]
            raise AnsibleActionFail(
                f"cannot follow the work, which goes on in the background: {why}. Run this again to wait for it."
            )
        return json.loads(said["stdout"].strip().splitlines()[-1])

    def _answer(self, command: str, data: bytes | None) -> dict[str, Any]:
        """Return the node's answer to a command, by a new connection if the present one is silent.

        :raises AnsibleConnectionFailure: the node is silent on the new one, too. The text says how to go on.
        """
        limit, what = SILENCE * self._play_context.timeout, "does not answer any more"
        try:
            with contextlib.suppress(Silent), within(limit):
                return self._low_level_execute_command(command, in_data=data)
            tell(f"the node has said nothing for {limit} s: it is asked by a new connection")
            with within(limit):
                self._connection.reset()
                return self._low_level_execute_command(command, in_data=data)
        except Silent:
            pass
        except AnsibleConnectionFailure as error:
            what = f"cannot be reached any more: {printable(str(error)).strip()}"
        # Ansible would remove it by the same connection: wait again, or show that failure in place of this one.
        self._connection._shell.tmpdir = None
        raise AnsibleConnectionFailure(f"the node {what}. {LATER}")


@contextlib.contextmanager
def within(limit: int) -> Iterator[None]:
    """Raise Silent in the block after `limit` seconds, as Ansible's `timeout` of a task does."""

    def late(_signal: int, _frame: object) -> None:
        raise Silent

    start, handler, others = time.monotonic(), signal.signal(signal.SIGALRM, late), signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        if others:
            signal.alarm(max(1, round(others - (time.monotonic() - start))))


def outcome(text: str) -> dict[str, Any]:
    """Return the result of a job that ended. One that was killed or broke left none."""
    lines = text.strip().splitlines()
    try:
        result = json.loads(lines[-1]) if lines else None
    except ValueError:
        result = None
    if isinstance(result, dict):
        return only_data(result)
    said = lines[-1] if lines else "nothing"
    what = (
        f"the work in the background was killed or broke, or its node was restarted (it said: {said}). Run this again."
    )
    return printable_data(dict(failed=True, msg=what, said=text))


def show(lines: Iterable[Any] | None) -> None:
    """Print the lines of a result."""
    for line in lines or ():
        tell(as_text(line))


def as_text(line: Any) -> str:
    """Return a line of a result as text: instance, node, phase, text and seconds.

    For example "jackie  board0  power     … 0.4 s". Further lines of its text are evidence and not shown. A string is a
    line already. Others' words in it cannot add a line that looks like the collection's.
    """
    if not isinstance(line, dict):
        return one_line(brief(str(line), LONGEST))
    text = line["text"].partition("\n")[0]
    phase = f"{line['phase']:<9} " if line.get("phase") else ""
    where = f"{line['node']:<7} {phase}" if line.get("node") else ""
    said = one_line(brief(f"{line['instance'] or '-':<7} {where}{text}", LONGEST))
    return said if line.get("seconds") is None else f"{said:<71} {line['seconds']:>5.1f} s"
