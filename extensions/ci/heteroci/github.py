# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of a self-hosted runner of GitHub Actions: each job of this runner has a board, which its steps reach.

The runner calls one before a job's first step, and one after its last step, also where the job was cancelled. What is
asked for is the runner's, as its hooks do not get the job's own variables: a label of the runner is a flavor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys

from . import cancelled, endings
from .cancelled import Cancelled
from .command import parser, request_of
from .endings import NoBoard, as_told, say
from .held import given_back, taken
from .names import name_of


def main():
    """Do what the hook is for; return the exit code: a job whose board did not come up is not begun."""
    hook = sys.argv[1]
    _join_streams()
    try:
        with cancelled.raised():
            missing = [name for name in NEEDS[hook] if not os.environ.get(name)]
            if missing:
                are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
                what = f"{' and '.join(missing)} {are} not set"
                raise NoBoard(endings.OTHER, f"{what}: a runner of GitHub Actions sets {them} for its hooks (guide_ci)")
            # whatever HETERO_NAME or CI_JOB_ID a step has set, this job's board is meant
            name = name_of(os.environ, only="github")
            asked = request_of(parser().parse_args(["take", "--name", name, *_folder(name)]))
            with _unheeded():
                stays = HOOKS[hook](asked)
    except (NoBoard, OSError) as error:
        error = as_told(error)
        _print(f"::error title=No board for this job::{_escaped(str(error))}\n")
        if error.console:
            with _unheeded():
                _print("".join(f"  | {line}\n" for line in error.console))
        return error.code
    except Cancelled as error:
        return error.code
    if stays:
        _print(f"::warning title={name} was not given back::{_escaped(stays.why)}\n")
    return 0


def started(asked):
    """Take the job's board, and give its steps the way to it."""

    def told(board):
        with open(os.environ["GITHUB_ENV"], "a", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in board.environment.items())

    taken(asked, told)


def completed(asked):
    """Give it back; return why that failed, or None. It ends with its lease then, and the job is what it was."""
    return given_back(asked)


HOOKS = {"started": started, "completed": completed}
#: Variables of the runner without which a hook cannot do its work.
NEEDS = {"started": ("GITHUB_RUN_ID", "GITHUB_ENV"), "completed": ("GITHUB_RUN_ID",)}


def _folder(name):
    """Return the option for the folder that the first hook used, as a step may have set another HETERO_STATE."""
    state, told = os.path.split(os.path.dirname(os.environ.get("HETERO_SSH_CONFIG", "")))
    return ["--state", state] if told == name and os.path.isdir(state) else []


def _join_streams():
    """Have all output on one stream: a runner reads two, and a line of the one may come before an earlier one of the
    other.
    """
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())


@contextlib.contextmanager
def _unheeded():
    """Have the runner obey none of what is said in the block. It looks for commands of their older form (##[error],
    ##[add-mask]) anywhere in a line; and lines of consoles, and of a playbook, are also written by whoever has a board.
    """
    token = secrets.token_hex(16)
    _print(f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        _print(f"\n::{token}::\n")  # it is heard at the beginning of a line, and a playbook that was ended ends in one


def _print(text):
    """Write what the runner reads."""
    say(text, sys.stdout)


def _escaped(text):
    """Return a text as the data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
