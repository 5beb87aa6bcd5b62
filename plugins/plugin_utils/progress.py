# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins that show a module's progress through Ansible's own display, the same by hand and under AWX.

Knows how to run a module with its lines printed after it, and how to follow one that goes on by itself by the events it
writes down. The modules and their events are not known here.
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
    one_line,
    printable,
    printable_data,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import NO_ANSWER, checked
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import ShortCalls, only_data
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import tell

#: What a job may take longer than it said before it counts as lost (seconds).
GRACE = 30.0
#: A look takes 1.5 s (following.LOOK). A node that says nothing for so many times Ansible's connection timeout (it is
#: 10 s) is asked by a new connection: ssh itself would wait for hours for one whose power or network is gone.
SILENCE = 3
LATER = "What was begun goes on there while it has power. Run this again: it waits for that, or goes on where it was."


class Silent(BaseException):
    """The node did not answer. No Exception, for connections that try again catch those."""


class ShowsLines(ShortCalls):
    """Runs the task's module and prints the `lines` of its result, once what the node answers was looked at: plays
    compute with it (answers.py).
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        module = self.module.rpartition(".")[2]
        try:
            return checked(self._asked(tmp, task_vars), module)
        except AnsibleError:
            raise
        except Exception as error:  # noqa: BLE001 - of whatever a node says in place of what it should
            return checked(dict(failed=True, msg=NO_ANSWER.format(module=module, error=one_line(repr(error)))), module)

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        show(result.get("lines"))
        return result


class Follows(ShowsLines):
    """Starts the module in the background and prints each phase as it happens, until the module ends.

    The module goes on when this process is killed. In check mode nothing takes long, and it runs as any other.
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
        """Print events until the job ends; returns the module's result."""
        printed = set()
        end = time.monotonic() + job["limit"] + GRACE
        while True:
            for number, node, instance, phase, text, seconds in news["events"]:
                job["after"] = number
                text = as_text(dict(instance=instance, node=node, phase=phase, text=text, seconds=seconds))
                printed.add(text)
                tell(text)
            if news["done"]:
                result = outcome(news["result"])
                show(line for line in result.get("lines", ()) if as_text(line) not in printed)
                return result
            if time.monotonic() > end:
                limit = job["limit"] + GRACE
                raise AnsibleActionFail(
                    f"the work in the background has not ended within {limit:.0f} s (job file {job['job']})"
                )
            news = self._look(job)

    def _look(self, job: dict[str, Any]) -> dict[str, Any]:
        """What following.look finds on the node; by standard input where the connection can, without a terminal."""
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
        """What the node says to a command, by a new connection where the one that there is has gone silent.

        :raises AnsibleConnectionFailure: it says nothing by a new one, either; its text says how to go on.
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
    """End what is done within by Silent after `limit` seconds, as Ansible's own `timeout` of a task does it."""

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
    """The result of a job that ended; one that was killed or broke left none."""
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
    """Print lines, of a result or as they are."""
    for line in lines or ():
        tell(as_text(line))


def as_text(line: Any) -> str:
    """A line of a result as people read it: who, where, which phase, what, how long ("jackie  board0  power     … 0.4
    s").

    Further lines of its text are evidence, for events and results. A string is a line already, and stays one: what
    others say in it cannot go on with a line that looks like ours.
    """
    if not isinstance(line, dict):
        return one_line(str(line))
    text = line["text"].partition("\n")[0]
    phase = f"{line['phase']:<9} " if line.get("phase") else ""
    where = f"{line['node']:<7} {phase}" if line.get("node") else ""
    said = one_line(f"{line['instance'] or '-':<7} {where}{text}")
    return said if line.get("seconds") is None else f"{said:<71} {line['seconds']:>5.1f} s"
