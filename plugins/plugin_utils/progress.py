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
import os
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
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_number
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import (
    LAST_WORDS,
    LONGEST,
    SHAPES,
    checked,
    no_answer,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.awaited import work_of
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import ShortCalls, TooLong, only_data
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import FIRST, QUIET, tell

#: Most seconds that work is followed, besides what the task itself gives it: the cabling check of 10,000 boards takes
#: nine days (boards/cabling/cabling.py). A node's own limit counts where it is less.
LONGEST_WORK = 14 * 86400.0
#: Options that give work seconds, and how often it has them: each of the tries of each board on its way.
GIVEN, TIMES = ("timeout", "soft_timeout", "limit"), 10
#: Seconds that a job may last longer than it announced before it counts as lost.
GRACE = 30.0
#: Seconds from one line that says nothing new to the next.
AGAIN = 10.0
#: A node that is silent for so many of Ansible's connection timeouts (10 s each) is asked by a new connection: ssh
#: would wait for hours for one that lost its power or network.
SILENCE = 3
#: Seconds from one connection that failed to the next: a node that starts, or is busy, refuses each at once.
CONNECT_AGAIN = 0.2
#: Least and most seconds of a look in which nothing happens; news ends it. Each look is a command on the node.
SHORTEST_LOOK, LONGEST_LOOK = 0.5, 5.0
#: Most lines of one task, and most characters of them all: 10,000 boards (MOST of board_fit.py) boot with about ten
#: lines each, of 80 characters. Ansible, its log and AWX's database keep each of them.
MOST_LINES, MOST_CHARACTERS = 200_000, 16 * 10**6
LATER = "What was begun goes on there while it has power. Run this again: it waits for that, or goes on where it was."


class Silent(BaseException):
    """The node did not answer. It is no Exception, because connections that try again catch those."""


class Lines:
    """Lines that one task prints of what a node says, each of them once, and no more of them than MOST_LINES.

    :param whose: the node and what it does, for the line which says that the rest is not shown.
    """

    def __init__(self, whose: str) -> None:
        self.whose, self._printed, self._full = whose, set[str](), False
        self._count = self._characters = 0

    def tell(self, text: str) -> None:
        """Print a line, unless there were too many before it; one that was printed is printed again."""
        if self._full:
            return
        self._printed.add(text)
        self._count, self._characters = self._count + 1, self._characters + len(text)
        if self._count > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._full, self._printed = True, set()
            text = f"{self.whose} says more than is shown of one task: the rest is left out; see whether it is sound"
        tell(text)

    def tell_new(self, text: str) -> None:
        """Print a line that was not printed yet."""
        if text not in self._printed:
            self.tell(text)


class Checks(ShortCalls):
    """Runs the task's module and checks its result (answers.py), because plays compute with it."""

    @property
    def _supports_async(self) -> bool:
        """Return whether a task may leave the module to itself: no play computes with what it answers."""
        return self.module.rpartition(".")[2] not in SHAPES

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        module = self.module.rpartition(".")[2]
        try:
            return checked(self._asked(tmp, task_vars), module)
        except AnsibleError as error:
            if len(str(error)) <= LONGEST:
                raise
            # what ssh passed on of a node's words, whole
            kind = AnsibleConnectionFailure if isinstance(error, AnsibleConnectionFailure) else AnsibleActionFail
            raise kind(printable(brief(str(error), LONGEST))) from None
        except TooLong as error:
            return no_answer(module, str(error))
        except Exception as error:  # noqa: BLE001 - of whatever a node says in place of what it should
            return checked(no_answer(module, one_line(brief(repr(error)))), module)

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return super().run(tmp, task_vars)


class ShowsLines(Checks):
    """Prints the `lines` of the module's result, too."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._name = str((task_vars or {}).get("inventory_hostname"))
        return super().run(tmp, task_vars)

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super()._asked(tmp, task_vars)
        self._show(result)
        return result

    def _show(self, result: dict[str, Any]) -> None:
        if result.get("lines"):
            lines = Lines(self._whose)
            for line in result["lines"]:
                lines.tell(as_text(line))

    @property
    def _whose(self) -> str:
        """The node, by its name in the inventory, and what it does, for people."""
        work = work_of(self.module.rpartition(".")[2], self._task.args)
        return f"{self._task.delegate_to or self._name}: {work}"


class Looks(Checks):
    """Looks at what its node writes down (job_watch.py), by commands that each wait there for news."""

    @property
    def _silence(self) -> int:
        """Seconds after which a node counts as silent."""
        return SILENCE * self._play_context.timeout

    def _look(self, job: dict[str, Any], lines: Lines) -> dict[str, Any]:
        """Return what job_watch finds on the node.

        Its source goes by standard input if the connection can do that.

        :param lines: tells of connections that broke.
        """
        program, by_input = inspect.getsource(job_watch), self._connection.has_pipelining
        words = [job["python"], "-I", "-S"] + (["-"] if by_input else ["-c", program]) + [json.dumps(job)]
        command = " ".join(shlex.quote(word) for word in words)
        said = self._answer(command, program.encode() if by_input else None, lines)
        if said["rc"] != 0:
            why = last_words(said.get("stderr") or said.get("stdout") or "")
            raise AnsibleActionFail(
                f"cannot follow the work, which goes on in the background: {why}. Run this again to wait for it."
            )
        return json.loads(said["stdout"].strip().splitlines()[-1])

    def _answer(self, command: str, data: bytes | None, lines: Lines) -> dict[str, Any]:
        """Return the node's answer to a command, by a new connection if the present one is silent or broke.

        :raises AnsibleConnectionFailure: no new one gets an answer, either. The text says how to go on.
        """
        limit, what = self._silence, "does not answer any more"
        try:
            with within(limit):
                return self._low_level_execute_command(command, in_data=data)
        except Silent:
            lines.tell(f"{lines.whose}: the node has said nothing for {limit} s: it is asked by a new connection")
        except AnsibleConnectionFailure:
            lines.tell(f"{lines.whose}: the connection to the node broke: it is asked by a new one")
        with contextlib.suppress(Silent), within(limit):
            while True:
                try:
                    self._connection.reset()
                    return self._low_level_execute_command(command, in_data=data)
                except AnsibleConnectionFailure as error:
                    what = f"cannot be reached any more: {one_line(brief(str(error).strip(), LONGEST))}"
                    time.sleep(CONNECT_AGAIN)
        # Ansible would remove it by the same connection: wait again, or show that failure in place of this one.
        self._connection._shell.tmpdir = None
        raise AnsibleConnectionFailure(f"the node {what}. {LATER}")


class Follows(Looks, ShowsLines):
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
            self._show(result)
        return result

    def _follow(self, job: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
        """Print events until the job ends; return the module's result."""
        told, pause, last = time.monotonic(), FIRST, ""
        # Of a compute host's work each step is told when it is done; a board's boot tells what is seen of it.
        by_steps = "node" in job
        since = ""  # what was told of, so that it is told once
        began, lines = told, Lines(self._whose)
        limit, play = self._limit(job["limit"]) + GRACE, os.getppid()
        end = time.monotonic() + limit
        while True:
            for number, node, instance, phase, text, seconds in news["events"]:
                job["after"] = number
                text = as_text(dict(instance=instance, node=node, phase=phase, text=text, seconds=seconds))
                lines.tell(text)
                told, pause, last = time.monotonic(), min(pause, QUIET) if by_steps else QUIET, text
            if news["done"]:
                result = outcome(news["result"])
                for line in result.get("lines") or ():
                    lines.tell_new(as_text(line))
                return result
            if time.monotonic() > end:
                where = one_line(brief(str(job["job"])))
                raise AnsibleActionFail(
                    f"the work in the background has not ended within {limit:.0f} s (job file {where})"
                )
            if time.monotonic() - told >= pause:
                told, pause = time.monotonic(), AGAIN
                after = f", since: {' '.join(last.split())}" if last != since else ""
                tell(f"{self._whose} goes on, {told - began:.0f} s so far{after}")
                since = last
            if os.getppid() != play:  # it was killed: who looks on says to the node that somebody waits
                raise AnsibleActionFail("the play has ended")
            rest = min(told + pause, end) - time.monotonic()
            wait = max(SHORTEST_LOOK, min(rest, LONGEST_LOOK, self._silence / 2))
            news = self._look(dict(job, wait=wait), lines)

    def _limit(self, said: Any) -> float:
        """Return the most seconds that the work may take: what its node says, within what the task gives it.

        :raises ValueError: the node says no number.
        """
        if not is_number(said):
            raise ValueError(f"limit is {brief(repr(said))}")
        given = [self._task.args.get(name) for name in GIVEN]
        return min(said, LONGEST_WORK + TIMES * sum(float(seconds) for seconds in given if seconds is not None))


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


def last_words(text: str) -> str:
    """Return the last line of what a node said, cut off where it is long; "nothing" if it said none."""
    said = [line for line in text[-LONGEST:].splitlines() if line.strip()]
    return one_line(brief(said[-1].strip(), LAST_WORDS)) if said else "nothing"


def outcome(text: str) -> dict[str, Any]:
    """Return the result of a job that ended. One that was killed or broke left none."""
    lines = text.strip().splitlines()
    try:
        result = json.loads(lines[-1]) if lines else None
    except ValueError:
        result = None
    if isinstance(result, dict):
        return only_data(result)
    what = (
        "the work in the background was killed or broke, or its node was restarted "
        f"(it said: {last_words(text)}). Run this again."
    )
    return printable_data(dict(failed=True, msg=what, said=text[-LONGEST:]))


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
