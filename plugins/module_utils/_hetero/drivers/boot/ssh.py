# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an address answers ssh with one certain host key: the only proof that a board runs the root made for it.

The ssh client does the proof: a private known_hosts file holds exactly the expected key and no login is offered, so
that the client ends with "Permission denied" after the key exchange proved the key. Only the client's own words count:
with LogLevel FATAL it prints nothing that a peer says (before the exchange, a peer's words come at ERROR and below,
newlines included), and its output is matched as a whole. This file does not know who may log in.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Mapping, cast

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, TimedOut
from ...core.output import TooMuch, collect
from ...core.this_node import THIS_NODE

if TYPE_CHECKING:
    import threading

SSH_PORT = 22
#: Seconds of one connect. Without a neighbour entry a connect is swallowed for a second or more; short ones notice at
#: once when the board is up (an ssh client's own limit of 1 s cost 3 s for each boot).
CONNECT = 0.25
NAP = 0.05
#: Seconds of the longest key exchange: an emulated board takes 1 s, a board at 300 MHz some seconds.
EXCHANGE = 15.0
#: Most bytes of the client's words that are read; those that count are one line. A server that lets anybody in passes
#: on what its own programs print.
MOST_SAID = 1 << 16

#: Key type → signature algorithms that prove a key of this type.
ALGORITHMS = {
    "ssh-ed25519": ["ssh-ed25519"],
    "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
    "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
    "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
    "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"],
}

#: Cheapest first, because nothing secret passes here: on an emulated board curve25519 takes 0.27 s, OpenSSH's own first
#: choice (sntrup761) 0.36 s. The last ones are for boards with old servers.
EXCHANGES = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha1",
)

#: The client's whole output at LogLevel FATAL if a server with the right key lets nobody in, and if a server shows
#: another key (OpenSSH, sshconnect2.c: userauth, verify_host_key_callback).
DENIED = r"root@{ip}: Permission denied \([^()\r\n]*\)\.\r?\n"
OTHER = r"Host key verification failed\.\r?\n"
#: Exit status of the client's own failures (ssh(1)).
FAILED = 255


class WrongHostKey(HeteroError):
    """Another machine, or another root, answers at the board's address."""


def known_hosts_line(ip: str, host_key: str | None, port: int = SSH_PORT) -> str:
    """Return lines of a known_hosts file for the keys in `host_key`, one on each line ("ssh-ed25519 AAAA… comment")."""
    name = ip if port == SSH_PORT else f"[{ip}]:{port}"
    keys = [line.split()[:2] for line in (host_key or "").splitlines() if line.strip()]
    if not keys or any(len(key) < 2 for key in keys):
        raise BadInput("no public host key is known for it", ip, "run board_image for its board")
    return "\n".join(" ".join([name] + key) for key in keys)


@contextmanager
def known_hosts_file(ip: str, host_key: str | None, port: int = SSH_PORT) -> Iterator[str]:
    """Yield the path of a known_hosts file that holds only these keys and exists during the block.

    It lies in memory, so that the proof does not depend on free disk space.
    """
    line = known_hosts_line(ip, host_key, port)
    with open(os.memfd_create("known_hosts"), "w", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}"


def client(ip: str, host_key: str, known_hosts: str, port: int, limit: float, more: Mapping[str, str]) -> list[str]:
    """Return the argument list of an ssh client for root that accepts only this host key and never asks.

    :param limit: seconds to connect.
    :param more: further options. The remote command is to be added after the list.
    """
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlgorithms": ",".join(_algorithms(host_key)),
        "KexAlgorithms": ",".join(EXCHANGES),
        "UpdateHostKeys": "no",
        "CheckHostIP": "no",
        "ControlPath": "none",
        "ConnectTimeout": str(max(1, int(limit))),
        **more,
    }
    argv = ["ssh", "-F", "none", "-T", "-p", str(port), "-l", "root"]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    return argv + [ip]


def _algorithms(host_key: str) -> list[str]:
    kinds = [line.split()[0] for line in host_key.splitlines() if line.strip()]
    return [name for kind in kinds for name in ALGORITHMS.get(kind, [kind])]


def no_login(host_key: str) -> dict[str, str]:
    """Return the options of a client that offers no login, so that only the key exchange takes place.

    Keys of other types are accepted after the expected ones: a server that has only another type then shows its key,
    and so is known to be another machine. A server that merely says that it has no key of a type may be anybody.
    """
    algorithms = _algorithms(host_key)
    others = [name for names in ALGORITHMS.values() for name in names if name not in algorithms]
    return {
        "PreferredAuthentications": "none",
        "PubkeyAuthentication": "no",
        "HostKeyAlgorithms": ",".join(algorithms + others),
        "LogLevel": "FATAL",
    }


class _Cancelled(Exception):
    """Nobody waits for the answer any more."""


def _said(argv: list[str], limit: float, cancelled: threading.Event | None) -> tuple[int, str]:
    """Return (exit code, standard error) of the ssh client. It is killed after `limit` seconds or when cancelled.

    A server that lets anybody in may print without end; then the client is killed as well.
    """

    def look(_process: int) -> None:
        if cancelled is not None and cancelled.is_set():
            raise _Cancelled

    try:
        client = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise HeteroError("the ssh client is not installed", "ssh", f"install openssh-client on {THIS_NODE}") from error
    said = ""
    with client:
        try:
            said = collect(client, Deadline(limit), most=MOST_SAID, look=look)[1]
        except (TimedOut, TooMuch, _Cancelled):
            client.kill()
    return client.returncode, said


def proven(
    ip: str, host_key: str, known_hosts: str, port: int, limit: float, cancelled: threading.Event | None = None
) -> bool:
    """Run the ssh client once; return True if the key is proven and False if there was no key exchange.

    :raises WrongHostKey: a key exchange proved another key.
    """
    argv = [*client(ip, host_key, known_hosts, port, limit, no_login(host_key)), "true"]
    code, said = _said(argv, limit, cancelled)
    # 0: the server lets anybody in, and `true` ran there.
    if code == 0 or (code == FAILED and re.fullmatch(DENIED.format(ip=re.escape(ip)), said)):
        return True
    if code == FAILED and re.fullmatch(OTHER, said):
        raise another_key(ip)
    return False


def another_key(ip: str) -> WrongHostKey:
    """Return the error of a machine that proved another key than the one put into its root."""
    return WrongHostKey("another host key answers there than the one put into its root", ip)


def _listens(ip: str, port: int, limit: float) -> bool:
    try:
        socket.create_connection((ip, port), timeout=limit).close()
    except OSError:
        return False
    return True


def alive(ip: str, limit: float, port: int = SSH_PORT) -> bool:
    """Return whether a machine is there: it accepts or refuses a connect to its ssh port.

    Without power it does neither.
    """
    try:
        socket.create_connection((ip, port), timeout=limit).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def answers(
    ip: str, host_key: str | None, deadline: Deadline, cancelled: threading.Event | None = None, port: int = SSH_PORT
) -> bool:
    """Wait until `ip` answers ssh with `host_key`.

    Each look begins with a TCP connect, which is cheap. Only after that the ssh client costs the board a key exchange.

    :param cancelled: ends the wait early.
    :returns: True if the key is proven, False if the deadline passed or the wait was cancelled.
    :raises WrongHostKey: another key answers.
    """
    with known_hosts_file(ip, host_key, port) as known_hosts:
        while not deadline.passed and not (cancelled is not None and cancelled.is_set()):
            if _listens(ip, port, min(CONNECT, max(deadline.left, 0.01))):
                if proven(
                    ip, cast(str, host_key), known_hosts, port, min(EXCHANGE, max(deadline.left, 1.0)), cancelled
                ):
                    return True
            deadline.nap(NAP)
        return False
