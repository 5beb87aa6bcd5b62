# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells a board by ssh to reboot: with the OpenSSH client, the board's own host key, and a key that may do only that.

Whether it reboots is shown only by its boot request, which the caller watches for. The tenant chooses what the command
prints: a little of it is read, and more waits on the board when the connection is full.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Callable, Iterator, Optional, cast

from ...core.errors import HeteroError
from ...core.output import text
from ...core.this_node import THIS_NODE
from .ssh import FAILED, SSH_PORT, client, known_hosts_file

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Returns why the command failed after the board was told, or None.
Refusal = Callable[[], Optional[str]]
#: Seconds to connect and log in: an emulated board takes 1 s, a board at 300 MHz some seconds.
LOGIN = 15.0
NAP = 0.05
#: Bytes that are read of the command's output, and of its errors: enough for the mark and for the reason of a failure.
MOST = 4096
OPTIONS = {
    "PreferredAuthentications": "publickey",
    "IdentitiesOnly": "yes",
    "ForwardAgent": "no",
    # Standard output came over the proven connection. Other words may be a peer's, and are only used in errors.
    "LogLevel": "ERROR",
}


class _Client:
    """The running client, and the first bytes of what it and the board's command print."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._said = {pipe.fileno(): b"" for pipe in (process.stdout, process.stderr) if pipe}
        for pipe in self._said:
            os.set_blocking(pipe, False)

    def said(self, pipe: IO[bytes] | None) -> str:
        """Return the first bytes of one of its pipes as text."""
        number = cast("IO[bytes]", pipe).fileno()
        while len(self._said[number]) < MOST:
            try:
                data = os.read(number, MOST - len(self._said[number]))
            except BlockingIOError:
                break
            if not data:
                break
            self._said[number] += data
        return text(self._said[number])

    def last(self, code: int) -> str:
        """Return the last line that it printed, on standard error rather than output."""
        lines = (self.said(self.process.stdout) + self.said(self.process.stderr)).splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), f"ssh ended with {code}")

    def refusal(self) -> str | None:
        """Return why the command failed; None while it runs, if it is done, or if the connection broke, as it does at a
        reboot.
        """
        code = self.process.poll()
        return None if code in (None, 0, FAILED) else self.last(code)


@contextmanager
def asked(
    ip: str, host_key: str | None, private_key: str, mark: str, deadline: Deadline, port: int = SSH_PORT
) -> Iterator[Refusal]:
    """Tell a board to reboot; yield a function that returns whether its command failed since.

    :param mark: what the forced command prints before it reboots.
    :raises HeteroError: it was not told: no answer, another host key, or the login was refused.
    """
    options = dict(OPTIONS, IdentityFile=private_key)
    with known_hosts_file(ip, host_key, port) as known_hosts:
        argv = [*client(ip, cast(str, host_key), known_hosts, port, LOGIN, options), "reboot"]
        with _start(argv) as process:
            told = _Client(process)
            try:
                limit = deadline.within(LOGIN)
                while True:
                    code = process.poll()
                    said = told.said(process.stdout)
                    if mark in said.splitlines():
                        break
                    if code is not None:
                        raise HeteroError(f"cannot be told to reboot by ssh: {told.last(code)}", ip)
                    if len(said) >= MOST or limit.passed:
                        what = f"did not say that it reboots within {MOST} bytes and {limit.seconds:g} s of its login"
                        raise HeteroError(what, ip)
                    limit.nap(NAP)
                yield told.refusal
            finally:
                # A board that reboots at once never closes the connection.
                process.kill()


def _start(argv: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise HeteroError("the ssh client is not installed", "ssh", f"install openssh-client on {THIS_NODE}") from error
