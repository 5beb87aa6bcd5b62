# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's playbooks, run as a person runs them, and what came of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

from . import cancelled, endings
from .endings import NoBoard, say
from .names import spent

#: What an option may be: Ansible runs what stands in {{ }} of a variable, and a CI's users write some of these.
SOUND = re.compile(r"[A-Za-z0-9 @._:,/+=-]*")
#: Seconds for a playbook to end by itself once it was told to.
GRACE = 10.0
#: The file of an outcome, and the bytes for which there is space before a playbook begins.
OUTCOME, SPACE = "outcome.json", 64 * 1024
#: The most bytes of one that are read: those of a hundred consoles' last lines are less.
MOST = 64 * 1024 * 1024
#: Variables by which runners find the processes of a job that is over, to end them (GitHub Actions, Jenkins).
FOUND_BY = ("RUNNER_TRACKING_ID", "BUILD_ID", "JENKINS_NODE_COOKIE", "JENKINS_SERVER_COOKIE", "HUDSON_COOKIE")
#: Seconds between two looks at a playbook, and how many in a row find no work of the processor for one that hangs.
#: Ansible looks a thousand times a second whether a task has ended, however long that takes (INTERNAL_POLL_INTERVAL).
#: Looks are counted, and no time, which goes on for a machine that was stopped. These are half an hour.
LOOKS, IDLE = 60.0, 30
#: Begins a playbook when a line is read, and none where the job ends before: who is killed then has told nobody of it.
GATE = ("/bin/sh", "-c", 'read -r line && exec "$@" </dev/null', "sh")


class Playbooks:
    """Runs playbooks.

    :param folder: of the job, where the outcomes of playbooks are written; what a killed job has left of them there is
        removed with it.
    :param inventories: of the site; none for the one that ansible.cfg names.
    :param watch: is told the id of each playbook's process when it begins, and None when it has ended (keeper.py).
    """

    def __init__(self, folder, inventories=(), watch=None):
        self.folder = folder
        self.inventories = list(inventories)
        self._watch = watch or (lambda process: None)

    def play(self, name, options, quiet=False):
        """Run a playbook to its end, and return its outcome (callback `outcome`) with its output as `said`.

        :param options: as a person gives them by -e.
        :param quiet: whether its output is for `said` alone, and not for this program's standard error.
        :return: as the callback has it; `told` is whether it came to its end.
        :raises NoBoard: an option is not sound, an inventory or Ansible is not there. Nothing was asked then.
        """
        for key, value in options.items():
            if key not in ("key", "only_key", "hetero_ssh_folder") and not SOUND.fullmatch(str(value)):
                raise NoBoard(endings.REQUEST, f"{key} is {value!r}: give letters, digits and any of @ . _ : , / + = -")
        for inventory in self.inventories:
            if "," not in inventory and not os.path.exists(inventory):  # Ansible takes it for an empty one
                what = f"there is no inventory {inventory}: name the site's by -i or HETERO_INVENTORY"
                raise NoBoard(endings.REQUEST, what)
        folder = self._outcome_folder()
        try:
            path = os.path.join(folder, OUTCOME)
            said, code = self._run(name, options, path, quiet)
            try:
                return dict(_sound(name, _outcome(path)), said=said, told=True)
            except (OSError, RecursionError, ValueError):
                # before it began to play, or its end could not be written: what it did is not known
                why = f"{name} ended with {code} and told no outcome; why is said above"
                return dict(ending=endings.OTHER, text=why, blame=None, console=[], instances=[], said=said, told=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _outcome_folder(self):
        """Make a folder in which there is space for an outcome: the job's own, unless its disk is full.

        :raises NoBoard: there is no space at all.
        """
        folder, full = None, None
        for where in (self.folder, None):
            try:
                folder = tempfile.mkdtemp(prefix="outcome-", dir=where)
                with open(os.path.join(folder, OUTCOME), "w", encoding="ascii") as file:
                    file.write(" " * SPACE)
                return folder
            except OSError as error:
                full = error
                shutil.rmtree(folder or "", ignore_errors=True)
        raise NoBoard(endings.OTHER, str(full))

    def _run(self, name, options, path, quiet):
        """Return (output where it is quiet, else "", exit code) of a playbook."""
        program = os.environ.get("HETERO_ANSIBLE_PLAYBOOK") or "ansible-playbook"
        if not shutil.which(program):
            remedy = "activate Ansible's environment, or name the program in HETERO_ANSIBLE_PLAYBOOK"
            raise NoBoard(endings.OTHER, f"{program}: no such program: {remedy}")
        argv = [*GATE, program]
        argv += [word for inventory in self.inventories for word in ("-i", inventory)]
        argv += [f"hetero.compute.{name}", "-e", json.dumps(options)]
        output = subprocess.PIPE if quiet else endings.errors()
        # the job's own ssh may have left its output, which is this one, as Ansible refuses it
        os.set_blocking(endings.errors(), True)
        sys.stderr.flush()
        process = None
        try:
            with cancelled.deferred():
                # a session of its own: what ends this program ends no playbook between two steps (stop does)
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=_environment(path),
                    cwd=_whereabouts(self.folder),
                    start_new_session=True,
                )
            self._watch(process.pid)
            with cancelled.waits():
                said = _all_said(name, process)
        except BaseException:
            if process is not None:
                with cancelled.unheard():  # below pytest a second Ctrl-C comes as the first one did
                    stop(process)
            raise
        finally:
            self._watch(None)
        return (said or b"").decode(errors="replace"), process.returncode


def _all_said(name, process):
    """Begin a playbook, and return what it has written to this process alone once it has ended; end one that hangs."""
    told, before, idle = b"told\n", None, 0
    while True:
        try:
            return process.communicate(told, LOOKS)[0]
        except subprocess.TimeoutExpired as error:
            if process.poll() is not None:  # and what it has left has its output
                return error.output
            told, now = None, spent(process.pid)
        idle = idle + 1 if now is not None and now == before else 0
        before = now
        if idle >= IDLE:
            minutes = LOOKS * IDLE / 60
            say(f"{name} hangs, and is ended: the processor had nothing to do for it for {minutes:.0f} minutes\n")
            stop(process)


def stop(process):
    """End a playbook with all of its processes. What it has begun on nodes goes on there, until it is terminated."""
    for number, limit in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limit)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # a worker that is left


def _outcome(path):
    """Return what a file has that is an outcome's; wait for no pipe that lies there."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
        said = os.fstat(file.fileno())
        if not stat.S_ISREG(said.st_mode) or said.st_size > MOST:
            raise ValueError(f"{path} is no outcome of a playbook")
        return json.load(file)


def _sound(name, outcome):
    """Return the outcome of a playbook as it was written; raise ValueError where it has not what a job needs."""
    try:
        given = outcome["instances"] if outcome["ending"] == endings.GIVEN else []
        has_all = all(one["instance"] and one["name"] and one["ip"] for one in given)
        is_whole = has_all and "blame" in outcome and outcome["ending"] in (endings.GIVEN, *endings.CODES)
        is_whole = is_whole and isinstance(outcome["text"], str) and isinstance(outcome["console"], list)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    if not is_whole or (name == "provision_instance" and outcome["ending"] == endings.GIVEN and not given):
        raise ValueError("it is not whole")
    return outcome


def _whereabouts(folder):
    """Return None while the folder is there in which this process is, else another one: Ansible begins in no other, and
    a job's command, or a runner that tidies up after a job, may have removed it.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        return folder if os.path.isdir(folder) else "/"
    return None


def out_of_reach(environ):
    """Return an environment without what a runner looks for: it ends no process with that one, which we end."""
    return {name: value for name, value in environ.items() if name not in FOUND_BY}


def _environment(path):
    """Return the environment of a playbook whose outcome goes to `path`."""
    enabled = os.environ.get("ANSIBLE_CALLBACKS_ENABLED", "")
    return dict(
        out_of_reach(os.environ),
        ANSIBLE_STDOUT_CALLBACK="hetero.compute.quiet",
        ANSIBLE_CALLBACKS_ENABLED=",".join(filter(None, [enabled, "hetero.compute.outcome"])),
        HETERO_OUTCOME=path,
        PYTHONUNBUFFERED="1",
    )
