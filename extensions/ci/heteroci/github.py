# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of a self-hosted runner of GitHub Actions: each job of this runner has a board, which its steps reach.

The runner calls one before a job's first step, and one after its last step, also where the job was cancelled. What is
asked for is the runner's, as its hooks do not get the job's own variables: a label of the runner is a flavor.
"""

from __future__ import annotations

import os
import secrets
import sys

from . import cancelled, endings
from .cancelled import Cancelled
from .command import parser, request_of
from .endings import NoBoard, as_told
from .held import given_back, taken
from .names import name_of


def main():
    """Do what the hook is for; return the exit code: a job whose board did not come up is not begun."""
    hook = sys.argv[1]
    try:
        with cancelled.raised():
            missing = [name for name in NEEDS[hook] if not os.environ.get(name)]
            if missing:
                why = f"{' and '.join(missing)} is not set: a runner of GitHub Actions sets it for its hooks (guide_ci)"
                raise NoBoard(endings.OTHER, why)
            # whatever HETERO_NAME or CI_JOB_ID a step has set, this job's board is meant
            name = name_of(os.environ, only="github")
            return HOOKS[hook](request_of(parser().parse_args(["take", "--name", name, *_folder(name)])))
    except (NoBoard, OSError) as error:
        error = as_told(error)
        sys.stdout.write(f"::error title=No board for this job::{_escaped(str(error))}\n")
        sys.stdout.write(_unheeded(error.console))
        return error.code
    except Cancelled as error:
        return error.code


def started(asked):
    """Take the job's board, and give its steps the way to it."""
    board = taken(asked)
    with open(os.environ["GITHUB_ENV"], "a", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in board.environment.items())
    return 0


def completed(asked):
    """Give it back; where that fails, it ends with its lease, and the job is what it was."""
    error = given_back(asked)
    if error:
        sys.stdout.write(f"::warning title={asked.name} was not given back::{_escaped(error.why)}\n")
    return 0


HOOKS = {"started": started, "completed": completed}
#: Variables of the runner without which a hook cannot do its work.
NEEDS = {"started": ("GITHUB_RUN_ID", "GITHUB_ENV"), "completed": ("GITHUB_RUN_ID",)}


def _folder(name):
    """Return the option for the folder that the first hook used, as a step may have set another HETERO_STATE."""
    state, told = os.path.split(os.path.dirname(os.environ.get("HETERO_SSH_CONFIG", "")))
    return ["--state", state] if told == name and os.path.isdir(state) else []


def _unheeded(console):
    """Return the lines of a console in a block whose commands the runner obeys none of: it looks for those of its older
    form (##[error], ##[add-mask]) anywhere in a line, and whoever has the board writes there.
    """
    if not console:
        return ""
    token, lines = secrets.token_hex(16), "".join(f"  | {line}\n" for line in console)
    return f"::stop-commands::{token}\n{lines}::{token}::\n"


def _escaped(text):
    """Return a text as the data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
