# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GitLab's custom executor: each job has a board, on which its scripts run.

GitLab runner calls this once for each stage (docs.gitlab.com, "The Custom executor"): config, prepare, run for each
script of the job, cleanup. Variables of the job come as CUSTOM_ENV_NAME, and whoever writes a job writes these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

from . import cancelled, endings
from .board import Board, Request
from .cancelled import Cancelled
from .endings import NoBoard, as_told, say, tell
from .held import given_back, said_of, taken
from .names import job_name
from .private import must_be_own, private_folder

#: What a job may choose by its variables; all else is the runner's.
CHOSEN = {"flavor": "HETERO_FLAVOR", "image": "HETERO_IMAGE"}
RUNNERS = dict(CHOSEN, hours="HETERO_HOURS", wait="HETERO_WAIT", owner="HETERO_OWNER")
#: Folders on the board.
BUILDS, CACHE = "/root/builds", "/root/cache"
#: Runs a script there, and keeps 255 for ssh, which ends so where it did not get through.
SHELL = "bash; code=$?; [ $code != 255 ] || code=254; exit $code"


def main():
    """Do one stage; return the exit code that GitLab goes by."""
    stage, words = sys.argv[1] if sys.argv[1:] else "", sys.argv[2:]
    if stage not in STAGES:
        say(f"gitlab: {stage or 'no stage'}: give {', '.join(STAGES)}, each as config.toml in guide_ci\n")
        return _code("SYSTEM")
    try:
        with cancelled.raised():
            return STAGES[stage](request(os.environ), words)
    except (NoBoard, OSError) as error:
        error = as_told(error)
        say(f"{error}\n" + "".join(f"  | {line}\n" for line in error.console))
        # what GitLab may try again on another runner is no fault of the job
        return _code("BUILD" if error.ending == endings.REQUEST else "SYSTEM")
    except Cancelled as error:
        return error.code


def request(environ):
    """Return what a job asks for.

    The number of the job is read from GitLab's own file, as a job may set a variable CI_JOB_ID to another job's.
    """
    try:
        with open(environ["JOB_RESPONSE_FILE"], encoding="utf-8") as file:
            job = json.load(file)
        number, host = int(job["id"]), urlsplit(job["git_info"]["repo_url"]).hostname
    except (KeyError, OSError, TypeError, ValueError) as error:
        why = "JOB_RESPONSE_FILE has no job: GitLab runner 13.8 or later sets it"
        raise NoBoard(endings.OTHER, f"{why} ({type(error).__name__}: {error})") from error
    options = {key: environ.get(name, "") for key, name in RUNNERS.items()}
    chosen = {key: environ.get(f"CUSTOM_ENV_{name}", "") for key, name in CHOSEN.items()}
    options.update({key: value for key, value in chosen.items() if value})
    inventories = filter(None, environ.get("HETERO_INVENTORY", "").split(os.pathsep))
    name = job_name("gitlab", str(number), [host or "", str(number)])
    try:
        asked = Request(name, {key: value for key, value in options.items() if value}, inventories)
        private_folder(asked.state)
        must_be_own(asked.state)
    except NoBoard as error:  # the folder for keys is the runner's, and no job chooses it
        raise NoBoard(endings.OTHER, error.why) from None
    return asked


def config(_asked, _words):
    """Say how the job is run. Nothing else may be printed."""
    said = dict(builds_dir=BUILDS, cache_dir=CACHE, builds_dir_is_shared=False, driver=dict(name="hetero.compute"))
    json.dump(said, sys.stdout)
    return 0


def prepare(asked, _words):
    """Take the job's board; the runner calls this again where that failed, and it goes on where it was."""

    def told(board):
        tell("".join(f"{key}={value}\n" for key, value in board.environment.items()))

    taken(asked, told)
    return 0


def run(asked, words):
    """Run one of the job's scripts on its board."""
    if not words:
        raise NoBoard(endings.OTHER, "run has no script: GitLab runner gives it one, by run_args as in guide_ci")
    board = Board(asked).found()
    with open(words[0], "rb") as script:
        status = _ended(board.ssh(SHELL), script)
    if status == 255:
        console = f"ansible-playbook hetero.compute.console -e instance={asked.name} -e owner={asked.options['owner']}"
        say(f"ssh does not get through to {asked.name} any more: its console says why: {console}\n")
        return _code("SYSTEM")
    if status < 0:  # for want of memory, say: what the script ended with is not known
        say(f"ssh to {asked.name} was ended on the runner's machine, by signal {-status}\n")
        return _code("SYSTEM")
    if status and os.environ.get("BUILD_EXIT_CODE_FILE"):
        try:
            with open(os.environ["BUILD_EXIT_CODE_FILE"], "w", encoding="ascii") as file:
                file.write(str(status))
        except OSError as error:  # whose failure it is, stays
            say(f"the script ended with {status}, which could not be written for GitLab: {error}\n")
    return _code("BUILD") if status else 0


def _ended(words, script):
    """Run a command with a script as its input; return the code with which it ended. It ends with this program."""
    process = None
    try:
        with cancelled.deferred():
            process = subprocess.Popen(words, stdin=script)
        with cancelled.waits():
            return process.wait()
    except Cancelled:
        if process is not None:
            process.kill()
            process.wait()
        raise


def cleanup(asked, _words):
    """Give the board back, if there is one; what fails is said, and ends with the lease."""
    error = given_back(asked)
    if error:
        say(f"{said_of(asked.name, error)}\n")
    return 0


STAGES = {"config": config, "prepare": prepare, "run": run, "cleanup": cleanup}


def _code(whose):
    """Return the code by which GitLab knows whose failure it is: the job's (BUILD) or the runner's (SYSTEM)."""
    return int(os.environ.get(f"{whose}_FAILURE_EXIT_CODE") or {"BUILD": 1, "SYSTEM": 2}[whose])
