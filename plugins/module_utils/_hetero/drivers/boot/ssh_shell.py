# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Shell over the system's OpenSSH client, with one host key, one key file, no agent and no questions.

Each command is a connection of its own, so callers with several commands put them into one script.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Iterator, cast

from ...core.command import MOST_WORDS
from ...core.errors import HeteroError, Lost, TimedOut
from ...core.output import MOST_OF_OTHERS, TooMuch, collect
from ...core.printable import brief
from ...core.readiness import writable
from ...core.this_node import THIS_NODE
from .shell import Shell, exit_error
from .ssh import FAILED, SSH_PORT, client, known_hosts_file

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .shell import Progress

#: Bytes that are sent at once, and seconds between two reports of progress.
CHUNK = 1 << 16
TELL = 0.4


class SshShell(Shell):
    """Root on a board by ssh.

    :param name: the board's, for errors.
    :param host_key: its public host key; any other is refused.
    :param key: path of the private key that the board accepts.
    """

    def __init__(self, name: str, ip: str, host_key: str | None, key: str, port: int = SSH_PORT) -> None:
        self.name = name
        self.ip = ip
        self.host_key = host_key
        self.key = key
        self.port = port

    def run(self, argv: list[str], deadline: Deadline, stdin: str | None = None) -> str:
        with open(stdin or os.devnull, "rb") as source, self._client(argv, deadline, source) as process:
            stdout, stderr = self._communicate(process, argv, deadline)
        self._check(process, argv, stderr)
        return stdout

    def put(self, source: str, target: str, deadline: Deadline, progress: Progress | None = None) -> None:
        # Only the size is read back. Callers can check the content better.
        argv = ["sh", "-c", 'cat > "$1" && wc -c < "$1"', "sh", target]
        size = os.path.getsize(source)
        with open(source, "rb") as file, self._client(argv, deadline, subprocess.PIPE) as process:
            sent = self._feed(process, file, size, deadline, progress or (lambda done, all: None))
            stdout, stderr = self._communicate(process, argv, deadline)
        self._check(process, argv, stderr)
        if not stdout.strip() == str(sent) == str(size):
            what = f"{size} bytes are to go to {target}, {sent} went, {stdout.strip() or 'none'} arrived"
            raise HeteroError(what, self.name, "look at the space there, and that nothing changes the file here")

    def _feed(
        self, process: subprocess.Popen[bytes], file: IO[bytes], size: int, deadline: Deadline, progress: Progress
    ) -> int:
        """Write the file to the client's input; return the bytes written.

        A client that ends early says why by its exit.
        """
        pipe, sent, told = cast("IO[bytes]", process.stdin).fileno(), 0, time.monotonic()
        os.set_blocking(pipe, False)
        data = memoryview(file.read(CHUNK))
        while data:
            if deadline.passed:
                process.kill()
                raise TimedOut(f"{sent} of {size} bytes arrived in {deadline.seconds:g} s", self.name, "raise timeout")
            if not writable([pipe], min(TELL, max(deadline.left, 0.01))):
                continue
            try:
                count = os.write(pipe, data)
            except BrokenPipeError:
                break
            sent += count
            data = data[count:] or memoryview(file.read(CHUNK))
            if time.monotonic() - told >= TELL:
                told = time.monotonic()
                progress(sent, size)
        os.set_blocking(pipe, True)
        return sent

    @contextmanager
    def _client(self, argv: list[str], deadline: Deadline, stdin: IO[bytes] | int) -> Iterator[subprocess.Popen[bytes]]:
        with known_hosts_file(self.ip, self.host_key, self.port) as known_hosts:
            options = {
                "IdentityFile": self.key,
                "IdentitiesOnly": "yes",
                "IdentityAgent": "none",
                "PreferredAuthentications": "publickey",
                # A board that is gone sends nothing: 15 s of silence end the client.
                "ServerAliveInterval": "5",
                "ServerAliveCountMax": "3",
                "LogLevel": "ERROR",
            }
            words = client(self.ip, cast(str, self.host_key), known_hosts, self.port, min(15.0, deadline.left), options)
            words += [" ".join(shlex.quote(word) for word in argv)]
            pipes: dict[str, Any] = dict(stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                process = subprocess.Popen(words, **pipes)
            except FileNotFoundError as error:
                what = "the ssh client is not installed"
                raise HeteroError(what, "ssh", f"install openssh-client on {THIS_NODE}") from error
            with process:
                try:
                    yield process
                finally:
                    if process.poll() is None:
                        process.kill()

    def _communicate(self, process: subprocess.Popen[bytes], argv: list[str], deadline: Deadline) -> tuple[str, str]:
        try:
            return collect(process, deadline, most=MOST_OF_OTHERS)
        except (TimedOut, TooMuch) as error:
            raise type(error)(f"{_short(argv)} {error.what}", self.name, "look at its console") from error

    def _check(self, process: subprocess.Popen[bytes], argv: list[str], stderr: str) -> None:
        if process.returncode == 0:
            return
        said = brief((stderr.strip() or "nothing").splitlines()[-1], MOST_WORDS)
        if process.returncode == FAILED:
            raise Lost(f"the connection to it is lost ({said})", self.name, "look at its power and its console")
        raise exit_error(_short(argv), process.returncode, said, self.name)


def _short(argv: list[str]) -> str:
    """Return a command as errors name it. Of a script the first words would say nothing."""
    return "a script" if argv[:2] == ["sh", "-c"] else " ".join(argv[:3])
