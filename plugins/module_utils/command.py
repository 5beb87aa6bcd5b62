# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running another program: an argument list, never a shell; always a limit; its words in the error."""

from __future__ import annotations

import subprocess

from .errors import HeteroError, TimedOut


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
    try:
        done = subprocess.run(
            argv,
            input=stdin if stdin is not None else "",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise HeteroError(
            f"program {argv[0]} is not installed", thing, "install it, or run the set-up playbook"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{argv[0]} did not end within {timeout:g} s", thing, remedy) from error
    if done.returncode not in ok:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise HeteroError(f"{' '.join(argv[:3])} ended with {done.returncode} and said: {said}", thing, remedy)
    return done.stdout
