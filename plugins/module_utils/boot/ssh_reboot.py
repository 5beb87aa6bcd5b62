# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a board by ssh to reboot: the OpenSSH client, the board's own host key, a key that may do nothing else.

Whether it did reboot only its boot request shows, which the caller watches for.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager

from ..errors import HeteroError
from .ssh import ALGORITHMS, EXCHANGES, SSH_PORT, known_hosts_line

#: Seconds for connecting and logging in; an emulated board takes 1 s, a board at 300 MHz some seconds.
LOGIN = 15.0
NAP = 0.05


@contextmanager
def asked(ip, host_key, private_key, mark, deadline, port=SSH_PORT):
    """A board that was told to reboot; inside, `refusal()` says whether its command ended badly since.

    :param mark: what the forced command prints before it reboots.
    :raises HeteroError: it was not told: no answer, another host key, the login refused.
    """
    with tempfile.TemporaryDirectory(prefix="hetero-reboot-") as folder:
        known_hosts, said = (os.path.join(folder, name) for name in ("known_hosts", "said"))
        with open(known_hosts, "w", encoding="utf-8") as file:
            file.write(known_hosts_line(ip, host_key, port) + "\n")
        with open(said, "wb") as output:
            client = _start(_argv(ip, host_key, private_key, known_hosts, port), output)
        with client:
            try:
                limit = deadline.within(LOGIN)
                while mark not in _read(said):
                    if client.poll() is not None and mark not in _read(said):
                        raise HeteroError(f"cannot be told to reboot by ssh: {_last(said, client.returncode)}", ip)
                    if limit.passed:
                        what = f"did not take the login for a reboot within {limit.seconds:g} s"
                        raise HeteroError(what, ip)
                    limit.nap(NAP)
                yield lambda: _refusal(client, said)
            finally:
                # A board that reboots at once never closes the connection.
                client.kill()


def _start(argv, output):
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    except FileNotFoundError as error:
        raise HeteroError("the ssh client is not installed", "ssh", "install openssh-client on this node") from error


def _argv(ip, host_key, private_key, known_hosts, port):
    kinds = [line.split()[0] for line in host_key.splitlines() if line.strip()]
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlgorithms": ",".join(name for kind in kinds for name in ALGORITHMS.get(kind, [kind])),
        "KexAlgorithms": ",".join(EXCHANGES),
        "PreferredAuthentications": "publickey",
        "IdentitiesOnly": "yes",
        "IdentityFile": private_key,
        "ForwardAgent": "no",
        "UpdateHostKeys": "no",
        "CheckHostIP": "no",
        "ControlPath": "none",
        "LogLevel": "ERROR",
        "ConnectTimeout": str(int(LOGIN)),
    }
    argv = ["ssh", "-F", "none", "-T", "-p", str(port), "-l", "root"]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    return [*argv, ip, "reboot"]


def _read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _last(path, code):
    lines = [line.strip() for line in _read(path).splitlines() if line.strip() and not line.startswith("@")]
    return lines[-1] if lines else f"ssh ended with {code}"


def _refusal(client, said):
    """Why the command failed; None while it runs, when it is done, and when the connection broke, as a reboot does."""
    code = client.poll()
    return None if code in (None, 0, 255) else _last(said, code)
