# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play says for itself, and no line for each task."""

from __future__ import annotations

DOCUMENTATION = r"""
name: quiet
type: stdout
short_description: Only what a play says for itself, errors, and what changed
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Prints the lines that the playbooks of this collection print for people, and little of Ansible's own. An error is
    told once, as C(HOST) and its message. Warnings, deprecations, and the differences of C(--diff) are shown.
  - At the end each host that changed, failed or was rescued has a line.
  - A task that lasts, and prints nothing itself, is named after 5 seconds and every 8 seconds from then on. So is
    whatever task runs when nothing was printed for 8 seconds, as of many short ones; one that prints lines itself, when
    it printed none for 15. On a terminal, the last line is live instead. It names the task that runs, and for how long
    it has run.
  - A play that is interrupted (Ctrl-C) says in one line what goes on by itself, and how to look at it or end it.
  - With C(-v) and more it is the callback P(ansible.builtin.default#callback), with each task and result.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - set as stdout in configuration, as C(stdout_callback = hetero.compute.quiet)
"""

import atexit
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.vars import load_extra_vars

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, printable
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_instance
from ansible_collections.hetero.compute.plugins.plugin_utils.live_line import LiveLine
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import prints_nowhere

#: Seconds to the first line about a task that lasts, and between later ones. LATER is also the longest that nothing is
#: said at all, but by a task that says itself how long it lasts: OWN_LATER is more than the ten seconds between two of
#: its lines (progress.AGAIN) and their way from the node. A busy machine adds its own.
FIRST = 5.0
LATER = 8.0
OWN_LATER = 15.0
#: Seconds from a task's begin to its live line, and between two writings of that.
SOON = 1.0
TICK = 0.5
#: Actions with these names print lines while they last.
OWN = "hetero.compute."
#: The action of the steps of a request.
STEP = "hetero.compute.request"
#: Actions that ask a person write to the terminal themselves.
ASKS = ("pause", "ansible.builtin.pause")
#: The end of the names of playbooks that bring something about of an instance, which goes on by itself.
ON_INSTANCES = "_instance"
#: What is said of a play that was interrupted, by its playbook; "" stands for all others.
INTERRUPTED = {
    "": "what was begun on the nodes may go on there; the same command again waits for it, or goes on where it was",
    "lab_up": "what was started of the lab runs on; the same command again goes on there, and "
    f"{play('lab_down')} ends it",
    "lab_down": "what is left of the lab runs on; the same command again goes on there",
    ON_INSTANCES: "what was begun on the nodes goes on there; "
    f"{play('status')} shows it, the same command again waits for it",
    **dict.fromkeys(("console", "flavors", "status"), "nothing was begun, and nothing goes on"),
}
#: What is said in place of it of a request that waits in the queue (module request, step waited).
WAITED = (
    "nothing was begun on the nodes; the request keeps its place in the queue for a minute: the same command within it "
    "goes on there, and without it the place is given up"
)
#: A message that says nothing without the program's own words.
BARE = "non-zero return code"
#: Most characters and lines of an error, and most warnings of a result, that are printed.
MOST = 50_000
LINES = 500
WARNINGS = 20
#: What Ansible says before the words of a filter of this collection that refused what it was given.
FILTER_SAYS = re.compile(r"^(Task failed: )?.*?The filter plugin 'hetero\.compute\.\w+' failed: ")
#: How the message of a module begins that ended without a result; its traceback's last line says why.
CRASHED = "MODULE FAILURE"


def quietly(name):
    """Return a method that does nothing, but with -v what the default callback does."""

    def method(self, *args, **kwargs):
        return getattr(Default, name)(self, *args, **kwargs) if self._is_verbose() else None

    return method


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "hetero.compute.quiet"

    def __init__(self):
        super().__init__()
        self._lasting = None  # (name of the task, when it began, whether it prints lines itself)
        self._over = threading.Event()
        self._live = None
        self._said = time.monotonic()  # when anything was printed last
        self._is_interrupted = False
        self._is_queued = False  # whether all that was done so far is to keep a place in the queue

    def _is_verbose(self):
        return self._display.verbosity > 0

    # ---- tasks

    def v2_playbook_on_start(self, playbook):
        self._tell_of_an_interrupt(Path(str(playbook._file_name)).stem)
        if self._is_verbose():
            super().v2_playbook_on_start(playbook)
            return
        self._note_what_is_said()
        self._live = LiveLine(self._display) if LiveLine.is_wanted() else None
        tell = self._show_what_lasts if self._live else self._name_what_lasts
        threading.Thread(target=tell, daemon=True).start()

    def _note_what_is_said(self):
        """Note when anything is printed, and have it printed at once."""
        print_line = self._display.display
        self._said = time.monotonic()

        def noted(*args, **kwargs):
            self._said = time.monotonic()
            try:
                print_line(*args, **kwargs)
                # Ansible leaves that to the system, which keeps lines for a pipe back until there are 8 KB of them
                sys.stdout.flush()
            except OSError:
                _print_nowhere()

        self._display.display = noted

    def _tell_of_an_interrupt(self, name):
        """Have a line printed when this process ends by Ctrl-C. Ansible calls no callback then."""
        before, process = signal.getsignal(signal.SIGINT), os.getpid()
        if not callable(before) or threading.current_thread() is not threading.main_thread():
            return

        def noted(number, frame):
            self._is_interrupted = True
            before(number, frame)

        def tell():
            if self._is_interrupted and os.getpid() == process and not self._over.is_set():
                self._over.set()
                self._display.display(f"Interrupted: {WAITED if self._is_queued else interrupted(name)}")

        signal.signal(signal.SIGINT, noted)
        atexit.register(tell)

    def v2_playbook_on_vars_prompt(self, *args, **kwargs):
        self._ask()  # before each play's start
        super().v2_playbook_on_vars_prompt(*args, **kwargs)

    def _ask(self):
        """Make room for what a person is asked."""
        self._lasting = None
        if self._live:
            self._live.hold()

    def v2_playbook_on_play_start(self, play):
        self._lasting = (play.get_name().strip(), time.monotonic(), False)
        if self._is_verbose():
            super().v2_playbook_on_play_start(play)

    def v2_playbook_on_task_start(self, task, is_conditional):
        if self._is_verbose():
            super().v2_playbook_on_task_start(task, is_conditional)
            return
        action = str(task.action)
        if action in ASKS:
            self._ask()
            return
        if self._live:
            self._live.go_on()
        self._lasting = (task.get_name().strip(), time.monotonic(), action.startswith(OWN))

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, False)

    def _name_what_lasts(self):
        told = None
        while not self._over.wait(TICK):
            lasting, now = self._lasting, time.monotonic()
            if lasting is None:
                continue
            name, began, tells = lasting
            since = told[1] if told and told[0] == lasting else began + FIRST - LATER
            if now - self._said >= (OWN_LATER if tells else LATER) or (not tells and now - since >= LATER):
                told = (lasting, now)
                seconds = now - began
                self._display.display(f"{name}: {seconds:.0f} s so far" if seconds >= SOON else name)

    def _show_what_lasts(self):
        while not self._over.wait(TICK):
            lasting, now = self._lasting, time.monotonic()
            if lasting is None or now - lasting[1] < SOON:
                self._live.clear()
            else:
                self._live.write(lasting[0], f": {now - lasting[1]:.0f} s")

    # ---- results

    def v2_runner_on_ok(self, result):
        if _task(result).action == STEP:
            self._is_queued = is_queued(_task(result).args.get("step"), _data(result), self._is_queued)
        if self._is_verbose():
            super().v2_runner_on_ok(result)
        elif _may_warn(result):
            self._handle_warnings(bounded(_data(result)))

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if self._is_verbose():
            super().v2_runner_on_failed(result, ignore_errors)
            return
        self._handle_warnings(bounded(_data(result)))
        if not ignore_errors:
            for text in errors(_data(result)):
                self._error(result, text)

    def v2_runner_on_unreachable(self, result):
        if self._is_verbose():
            super().v2_runner_on_unreachable(result)
        elif not getattr(_task(result), "ignore_unreachable", False):
            for one in failed(_data(result), "unreachable"):
                self._error(result, f"{_delegate(_task(result), one)}cannot be reached: {_message(one)}")

    def _error(self, result, text):
        host = getattr(result, "host", None) or result._host
        self._display.display(f"{host.get_name()}: {as_told(text)}", color="red", stderr=self._on_stderr())

    def _on_stderr(self):
        return bool(self.get_option("display_failed_stderr"))

    # ---- the end

    def v2_playbook_on_stats(self, stats):
        self._over.set()
        if self._is_verbose():
            super().v2_playbook_on_stats(stats)
            return
        if self._live:
            self._live.end()
        words_of = {"changed": "changed", "unreachable": "unreachable", "failures": "failed", "rescued": "rescued"}
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            words = [f"{counts[key]} {word}" for key, word in words_of.items() if counts.get(key)]
            if words:
                self._display.display(f"{host}: {', '.join(words)}")
        if context.CLIARGS.get("check"):
            self._display.display("A dry run: nothing was changed")


for _name in (
    "v2_runner_on_skipped", "v2_runner_on_start", "v2_playbook_on_no_hosts_matched",
    "v2_playbook_on_no_hosts_remaining", "v2_playbook_on_include", "v2_playbook_on_notify", "v2_runner_item_on_ok",
    "v2_runner_item_on_failed", "v2_runner_item_on_skipped",
    "v2_runner_retry", "v2_runner_on_async_poll", "v2_runner_on_async_ok", "v2_runner_on_async_failed",
):  # fmt: skip
    setattr(CallbackModule, _name, quietly(_name))


def errors(data, what="failed"):
    """Return what is wrong by a result that failed or is unreachable: its message, or those of its items that are."""
    return [_message(one) for one in failed(data, what)]


def failed(data, what):
    """Return those items of a result that failed or are unreachable; the result itself where it has none."""
    results = data.get("results")
    items = [item for item in results if isinstance(item, dict) and item.get(what)] if isinstance(results, list) else []
    return [one for item in items for one in failed(item, what)] or [data]


def _delegate(task, data):
    """Return the host that a task was for in another's place, and a blank; nothing where it was for its own."""
    delegate = getattr(task, "delegate_to", None)
    if "{" in str(delegate):  # of a loop, whose items are the hosts
        delegate = data.get("_ansible_item_label")
    return f"{delegate} " if isinstance(delegate, str) else ""


def as_told(text):
    """Return an error as it is printed: bounded, without what a terminal obeys, and with its further lines indented.

    A node's words may be in it, which must not add a line that looks like one of ours.
    """
    lines = printable(brief(text.strip(), MOST)).splitlines()
    told = [line if number == 0 or line[:1].isspace() else f"  {line}" for number, line in enumerate(lines)]
    return "\n".join(told[:LINES] + ([f"  and {len(told) - LINES} lines more"] if told[LINES:] else []))


def bounded(data):
    """Return a result whose warnings are as few and as long as anybody reads."""
    warnings = data.get("warnings")
    if not isinstance(warnings, list):
        return data
    return dict(data, warnings=[as_told(one) if isinstance(one, str) else one for one in warnings[:WARNINGS]])


def interrupted(name):
    """Return what goes on by itself after this playbook was interrupted, and what a person can do about it."""
    is_verb = name.endswith(ON_INSTANCES)
    said = INTERRUPTED.get(ON_INSTANCES if is_verb else name, INTERRUPTED[""])
    if is_verb and not name.startswith("terminate"):
        given = load_extra_vars(DataLoader()).get("instance")
        end = play("terminate_instance", instance=str(given) if is_instance(given) else "NAME")
        said = f"{said}, and {end} ends the instance"
    return said


def is_queued(step, plan, before):
    """Return whether a request has a place in the queue and nothing else: while it waits, and while it looks again.

    :param plan: what a step of a request returned.
    :param before: the same as it was before that step.
    """
    if step == "choose":
        return before and not plan.get("visits")
    waits = plan.get("waits") and plan.get("has_place")
    return bool(waits and (step == "waited" or (step == "claimed" and not plan.get("surplus"))))


def _may_warn(result):
    """Return whether a result may have warnings. Since ansible-core 2.19 that is known without a copy of all of it."""
    return any(getattr(result, name, True) for name in ("warnings", "deprecations"))


def _print_nowhere():
    """Let this process go on once nobody reads what it prints (`| head`); a later flush would end in a traceback.

    What only shows something ends then (playbook watch).
    """
    prints_nowhere()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _message(data):
    text = str(data.get("censored") or data.get("msg") or "it failed, and says nothing: run it again with -v")
    text = FILTER_SAYS.sub("", text)
    crashed = text.startswith(CRASHED)
    keys = ("module_stderr", "module_stdout") if crashed else ("stderr", "stdout")
    said = next(filter(None, (str(data.get(key) or "").strip() for key in keys)), "")
    return f"{text.splitlines()[0]}: {said.splitlines()[-1].strip()}" if said and (crashed or text == BARE) else text


def _data(result):
    """Return a result's values; their name lost its underscore in ansible-core 2.19."""
    return result.result if hasattr(result, "result") else result._result


def _task(result):
    return result.task if hasattr(result, "task") else result._task
