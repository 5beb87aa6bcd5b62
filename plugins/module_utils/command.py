# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running another program: an argument list, never a shell; always a limit; its words in the error."""

from __future__ import annotations

import os
import signal
import subprocess

from .deadline import Deadline
from .errors import HeteroError, TimedOut

#: How often a program is looked at that somebody wants to look at (seconds).
LOOK = 0.3


def ended(argv, thing=None, remedy=None, timeout=30.0, stdin="", env=None, look=None):
    """Run `argv` to its end, whatever its exit code; a CompletedProcess with stdout and stderr as text.

    :param env: variables that it has besides ours.
    :param look: called with its process id every LOOK seconds while it runs.
    :raises TimedOut: the limit passed; the program is killed with all that it started. What it had said is in the fact
        `said`.
    :raises HeteroError: it is missing, or cannot be run.
    """
    try:
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            errors="replace",
            env={**os.environ, **(env or {})},
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = _communicate(process, stdin, timeout, look)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
    except FileNotFoundError as error:
        what = f"program {argv[0]} is not installed"
        raise HeteroError(what, thing or argv[0], "install it, or run the set-up playbook") from error
    except OSError as error:
        raise HeteroError(f"program {argv[0]} cannot be run ({error.strerror})", thing or argv[0], remedy) from error
    except subprocess.TimeoutExpired as error:
        said = b"".join(part or b"" for part in (error.stderr, error.stdout)).decode("utf-8", "replace")
        raise TimedOut(f"{argv[0]} did not end within {timeout:g} s", thing or argv[0], remedy, said=said) from error
    return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def _communicate(process, stdin, timeout, look):
    if look is None:
        return process.communicate(stdin, timeout)
    deadline = Deadline(timeout)
    while True:
        try:
            return process.communicate(stdin, min(LOOK, deadline.left))
        except subprocess.TimeoutExpired:
            if deadline.passed:
                raise
            stdin = None  # it is given once
            look(process.pid)


def last_words(done):
    """The last line that a program said, on standard error rather than output."""
    return (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]


def command(argv, thing=None, remedy=None, timeout=30.0, stdin=None, ok=(0,)):
    """Run `argv` and return its standard output as text.

    :param thing: what the error names (default: the program).
    :param timeout: seconds, after which the program is killed.
    :param stdin: text for its standard input (secrets go here, never into argv).
    :param ok: exit codes that are no error.
    :raises TimedOut: the limit passed.
    :raises HeteroError: the program is missing, or ended with another code; its last output is in the text.
    """
    thing = thing or argv[0]
    done = ended(argv, thing, remedy, timeout, stdin or "")
    if done.returncode not in ok:
        raise HeteroError(
            f"{' '.join(argv[:3])} ended with {done.returncode} and said: {last_words(done)}", thing, remedy
        )
    return done.stdout
