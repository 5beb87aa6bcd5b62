# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run other programs: by an argument list, never a shell; with limits of time and bytes; their output in errors."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Callable, Container, Mapping, NamedTuple, Sequence

from .deadline import Deadline
from .errors import HeteroError, TimedOut
from .output import MOST, TooMuch, collect
from .printable import brief

#: Most characters of a program's last line in an error; it may pass on what a board or a PDU says.
MOST_WORDS = 700


class Limits(NamedTuple):
    """The limits after which a program is killed with all that it started.

    :param seconds: seconds that it may run.
    :param most: bytes that it may print, output and errors together.
    """

    seconds: float = 30.0
    most: int = MOST


USUAL = Limits()


def ended(
    argv: Sequence[str],
    thing: str | None = None,
    remedy: str | None = None,
    limits: Limits = USUAL,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    look: Callable[[int], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `argv` to its end, whatever its exit code; return a CompletedProcess with stdout and stderr as text.

    :param thing: what errors name (default: the program).
    :param remedy: what errors say is to be done.
    :param stdin: text for its standard input (secrets go here, never into argv).
    :param env: environment variables that the program has besides ours.
    :param look: called with the program's process id a few times a second while it runs.
    :raises TimedOut: the program ran too long and was killed. The fact `said` has what it printed until then.
    :raises HeteroError: the program is missing, cannot be run, or printed too much and was killed.
    """
    try:
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = collect(process, Deadline(limits.seconds), stdin, limits.most, look)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
    except FileNotFoundError as error:
        what = f"program {argv[0]} is not installed"
        raise HeteroError(what, thing or argv[0], "install it, or run the set-up playbook") from error
    except OSError as error:
        raise HeteroError(f"program {argv[0]} cannot be run ({error.strerror})", thing or argv[0], remedy) from error
    except (TimedOut, TooMuch) as error:
        raise type(error)(f"{argv[0]} {error.what}", thing or argv[0], remedy, **error.facts) from error
    return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a program said, on standard error rather than output, or its beginning."""
    return brief((done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1], MOST_WORDS)


def command(
    argv: Sequence[str],
    thing: str | None = None,
    remedy: str | None = None,
    timeout: float = 30.0,
    stdin: str | None = None,
    ok: Container[int] = (0,),
) -> str:
    """Run `argv` and return its standard output as text.

    :param thing: what the error names (default: the program).
    :param timeout: seconds, after which the program is killed.
    :param stdin: text for its standard input (secrets go here, never into argv).
    :param ok: exit codes that are no error.
    :raises TimedOut: the limit passed.
    :raises HeteroError: the program is missing, or ended with another code; its last output is in the text.
    """
    thing = thing or argv[0]
    done = ended(argv, thing, remedy, Limits(timeout), stdin or "")
    if done.returncode not in ok:
        raise HeteroError(
            f"{' '.join(argv[:3])} ended with {done.returncode} and said: {last_words(done)}", thing, remedy
        )
    return done.stdout
