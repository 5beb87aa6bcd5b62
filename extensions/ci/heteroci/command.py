# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`board run`, `board take` and `board give-back`."""

from __future__ import annotations

import argparse
import difflib
import errno
import json
import os
import shlex
import subprocess
import sys

from . import cancelled, endings
from .board import HOURS, KEPT, NAME, WAIT, Request
from .cancelled import Cancelled
from .endings import NoBoard, as_told, say, tell
from .held import given_back, held, taken
from .names import name_of, name_of_process

#: Options of provision_instance that have a word of their own here, and the variables that say them otherwise.
OWN = {"flavor": "HETERO_FLAVOR", "image": "HETERO_IMAGE", "hours": "HETERO_HOURS", "wait": "HETERO_WAIT"}
#: All options, for who misspells one.
OPTIONS = [f"--{word}" for word in (*OWN, "owner", "name", "part", "inventory", "state", "report")]
#: Options that this program gives by itself.
GIVEN = ("instance", "key", "key_file", "only_key", "hetero_ssh_folder")
#: What is said where the name would be that of whoever is started in the same way.
NO_SHELL = (
    "name the board (--name, or HETERO_NAME): no shell has called this program, by which the board would be told from "
    "those of others that a service, a container or a program starts here"
)
#: Errors of a machine that has none left, and no word of whether the user's command could be started elsewhere.
OF_THE_MACHINE = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
#: Seconds for the user's command to end once it was told to.
GRACE = 30.0
#: What a shell gets of a `take` that has failed: `eval` of nothing would be a success, and the lines after it would run
#: on this machine what is meant for the board.
NO_WAY_IN = "unset HETERO_INSTANCE HETERO_INSTANCES HETERO_NODE HETERO_ADDRESS HETERO_ADDRESSES HETERO_SSH_CONFIG\n"
NO_WAY_IN += "export HETERO_SSH=false\n"


class Parser(argparse.ArgumentParser):
    """Ends with the code of a wrong request."""

    def error(self, message):
        words = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        near = [difflib.get_close_matches(word, OPTIONS, 1) for word in words]
        meant = "".join(f"is {option} meant? " for (option,) in filter(None, near))
        raise NoBoard(endings.REQUEST, f"{message}: {meant}board {{run,take,give-back}} --help has the options")


def request_of(arguments):
    """Return the request of the command line and the environment."""
    options = {key: getattr(arguments, key) or os.environ.get(name, "") for key, name in OWN.items()}
    for given in arguments.option:
        key, sign, value = given.partition("=")
        if not sign or key in GIVEN:
            raise NoBoard(endings.REQUEST, f"-e {given}: give OPTION=VALUE, an option of provision_instance")
        options[key] = value
    options["owner"] = arguments.owner or os.environ.get("HETERO_OWNER") or "ci"
    inventories = arguments.inventory or list(filter(None, os.environ.get("HETERO_INVENTORY", "").split(os.pathsep)))
    given, part = os.environ.get("HETERO_NAME", ""), arguments.part
    # what is said for all of a job is one board's only where no part is named
    name = arguments.name or (not part and given) or name_of(os.environ, f"{given} {part}".strip())
    options = {key: value for key, value in options.items() if value}
    request = Request(name or name_of_process(), options, inventories, arguments.state)
    if arguments.verb == "give-back" and not os.path.isdir(request.folder):
        name = _found_as_told(request, arguments, not (arguments.name or part or given)) or name
    if arguments.verb != "run" and not name:  # a run gives back itself what it takes
        raise NoBoard(endings.REQUEST, NO_SHELL)
    return request


def _found_as_told(request, arguments, is_any):
    """Have a request mean the board of which this shell's `take` told; return its name, "" where that is not there.

    That `take` may have had another parent, as in $(… 2>log), or another folder in which a HETERO_STATE without a
    beginning / was.

    :param is_any: whether no other name was given for it.
    """
    told = os.path.dirname(os.environ.get("HETERO_SSH_CONFIG", ""))
    state, name = os.path.split(told)
    if not os.path.isfile(os.path.join(told, KEPT)) or not NAME.fullmatch(name):
        return ""
    if not (is_any or name == request.name) or (arguments.state and state != request.state):
        return ""
    request.name, request.state = name, state
    return name


def parser():
    found = Parser(prog="board", description="A board, container or guest for a CI job.")
    verbs = found.add_subparsers(dest="verb", required=True)
    for verb, what in (
        ("run", "take a board, run a command with it, give the board back"),
        ("take", "take a board, and print how to reach it"),
        ("give-back", "give it back; where none was taken, nothing is done"),
    ):
        one = verbs.add_parser(verb, help=what, description=what)
        for key, name in OWN.items():
            usual = {"hours": f", else {HOURS}", "wait": f" in minutes, else {WAIT}"}.get(key, "")
            one.add_argument(f"--{key}", help=f"as provision_instance has it (or ${name}{usual})")
        one.add_argument("--owner", help="who has it (or $HETERO_OWNER, else ci)")
        one.add_argument("--name", help="of the instance (or $HETERO_NAME, else of the CI's job)")
        one.add_argument("--part", default="", help="any text that tells boards of one job apart")
        one.add_argument("-i", "--inventory", action="append", default=[], help="of the site (or $HETERO_INVENTORY)")
        one.add_argument("-e", dest="option", action="append", default=[], metavar="OPTION=VALUE", help="any other")
        one.add_argument("--state", help="folder for keys (or $HETERO_STATE, else ~/.local/state/hetero-ci)")
        one.add_argument("--report", metavar="FILE", help="write as JSON how it ended")
        if verb == "run":
            one.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what is run with it")
    return found


def main(argv=None):
    """Do what the command line says; return the exit code."""
    with cancelled.raised():
        return _done(sys.argv[1:] if argv is None else argv)


def _done(argv):
    report = {}
    arguments = None
    try:
        if argv[:1] == ["take"]:
            tell(f"{NO_WAY_IN}! :\n")  # all that its shell gets of one that is killed, and no success
        arguments = parser().parse_args(argv)
        request = request_of(arguments)
        report["instance"] = request.name
        code = VERBS[arguments.verb](request, arguments, report)
    except (NoBoard, OSError) as error:
        error = as_told(error)
        say(f"board: {error}\n")
        report.update(ended=error.ending, why=error.why, blame=error.blame, console=error.console)
        code = error.code
    except Cancelled as error:
        say(f"board: cancelled by {error}\n")
        report["ended"] = "cancelled"
        code = error.code
    if arguments is not None and arguments.report:
        try:
            with open(arguments.report, "w", encoding="utf-8") as file:
                json.dump(dict(report, code=code), file)
        except OSError as error:
            say(f"board: {arguments.report} was not written: {error.strerror}\n")
            code = code or endings.CODES[endings.OTHER]
    if code and argv[:1] == ["take"]:
        say(f"{'' if report.get('ended') == 'taken' else NO_WAY_IN}(exit {code})\n", sys.stdout)
    return code


def run(request, arguments, report):
    """Take a board, run the command, give the board back whatever happens; return the code to end with."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise NoBoard(endings.REQUEST, "name a command: board run --flavor FLAVOR -- COMMAND")
    with held(request) as board:
        report.update(board.environment)
        status = _status(command, board.environment)
    code = endings.code_of(status)
    report.update(ended="command", status=status)
    if code == endings.SHIFTED and status != code:
        say(f"board: the command ended with {status}, which says something else here: {code}\n")
    return code


def take(request, _arguments, report):
    """Take a board, and print how to reach it, as lines for a shell."""

    def told(board):
        tell("".join(f"export {key}={shlex.quote(value)}\n" for key, value in board.environment.items()))

    report.update(taken(request, told).environment, ended="taken")
    return 0


def give_back(request, _arguments, report):
    if not os.path.isdir(request.folder):
        say(f"board: {request.name}: this machine has nothing of that name to give back\n")
    error = given_back(request)
    report["ended"] = "given back"
    if error:
        raise error
    return 0


VERBS = {"run": run, "take": take, "give-back": give_back}


def _status(command, environment):
    """Return the exit code of the user's command, negative where a signal ended it."""
    process = None
    try:
        with cancelled.deferred():
            process = subprocess.Popen(command, env=dict(os.environ, **environment))
        with cancelled.waits():
            return process.wait()
    except OSError as error:
        cancelled.heeded()
        if error.errno in OF_THE_MACHINE:
            raise NoBoard(endings.OTHER, f"{command[0]}: {error.strerror}") from None
        say(f"board: {command[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126  # as a shell has it
    except Cancelled as error:
        if process is not None:
            # the terminal or the runner may have told it as well
            process.send_signal(error.number)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        raise
