# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an address answers ssh with one certain host key: the only proof that a board runs the root made for it.

The proof is left to the ssh client: a private known_hosts file holds exactly the expected key and no login is offered,
so "Permission denied" can only come after the key exchange proved the key. Who may log in is not its business.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile

from ..errors import BadInput, HeteroError

SSH_PORT = 22
#: A board without a neighbour entry swallows connects for a second or more; short ones see it as soon as it is up
#: (facts/lab.md: an ssh client's own 1 s connect limit cost 3 s a boot).
CONNECT = 0.25
NAP = 0.05
#: Longest key exchange: an emulated board takes 1 s, a board at 300 MHz some seconds.
EXCHANGE = 15.0

#: Key type → signature algorithms that prove such a key.
ALGORITHMS = {
    "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"],
}

#: Nothing secret passes here, so the cheapest exchange comes first: on an emulated board curve25519 takes 0.27 s,
#: OpenSSH's own first choice (sntrup761) 0.36 s. The last ones are for boards with old servers.
EXCHANGES = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha1",
)

WRONG = re.compile(
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|no matching host key type found"
)


class WrongHostKey(HeteroError):
    """Another machine, or another root, answers at the board's address."""


def known_hosts_line(ip, host_key, port=SSH_PORT):
    """Lines of a known_hosts file: `host_key` is one public key a line ("ssh-ed25519 AAAA… comment")."""
    name = ip if port == SSH_PORT else f"[{ip}]:{port}"
    keys = [line.split()[:2] for line in (host_key or "").splitlines() if line.strip()]
    if not keys or any(len(key) < 2 for key in keys):
        raise BadInput("no public host key is known for it", ip, "run board_image for its board")
    return "\n".join(" ".join([name] + key) for key in keys)


#: Options of a client that offers no login: the key exchange is all that is asked for.
NO_LOGIN = {
    "PreferredAuthentications": "none",
    "PubkeyAuthentication": "no",
    "LogLevel": "INFO",  # with ERROR it does not say that the server has no key of this type
}


def client(ip, host_key, known_hosts, port, limit, more):
    """The words of an ssh client for root that takes no host key but this, and never asks.

    :param more: options besides; the remote command goes behind what is returned.
    """
    kinds = [line.split()[0] for line in host_key.splitlines() if line.strip()]
    algorithms = [name for kind in kinds for name in ALGORITHMS.get(kind, [kind])]
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlgorithms": ",".join(algorithms),
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


def _said(argv, limit, cancelled):
    """(exit code or None, standard error) of the ssh client, which is killed at the limit or when cancelled."""
    try:
        client = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise HeteroError("the ssh client is not installed", "ssh", "install openssh-client on this node") from error
    with client:
        waited = 0.0
        while True:
            try:
                return client.returncode, client.communicate(timeout=0.1)[1]
            except subprocess.TimeoutExpired:
                waited += 0.1
                if waited >= limit or (cancelled is not None and cancelled.is_set()):
                    client.kill()


def proven(ip, host_key, known_hosts, port, limit, cancelled=None):
    """One attempt of the ssh client: True when the key is proven, False when no key exchange came about.

    :raises WrongHostKey: a key exchange proved another key.
    """
    code, said = _said([*client(ip, host_key, known_hosts, port, limit, NO_LOGIN), "true"], limit, cancelled)
    if code == 0 or f"root@{ip}: Permission denied (" in said:
        return True
    if WRONG.search(said):
        lines = [line for line in said.splitlines() if line.strip() and not line.startswith("@")]
        raise WrongHostKey(
            "another host key answers there than the one put into its root", ip, said=lines[-1] if lines else ""
        )
    return False


def _listens(ip, port, limit):
    try:
        socket.create_connection((ip, port), timeout=limit).close()
    except OSError:
        return False
    return True


def alive(ip, limit, port=SSH_PORT):
    """Whether a machine is there: it takes or refuses a connect to its ssh port; without power it does neither."""
    try:
        socket.create_connection((ip, port), timeout=limit).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def answers(ip, host_key, deadline, cancelled=None, port=SSH_PORT):
    """Wait until `ip` answers ssh with `host_key`.

    A bare TCP connect is the cheap question; the ssh client, which costs the board a key exchange, is asked only after
    it.

    :param cancelled: threading.Event that ends the wait early.
    :returns: True when the key is proven, False when the deadline passed or the wait was cancelled.
    :raises WrongHostKey: another key answers.
    """
    folder = tempfile.mkdtemp(prefix="hetero-ssh-")
    known_hosts = os.path.join(folder, "known_hosts")
    try:
        with open(known_hosts, "w", encoding="utf-8") as file:
            file.write(known_hosts_line(ip, host_key, port) + "\n")
        while not deadline.passed and not (cancelled is not None and cancelled.is_set()):
            if _listens(ip, port, min(CONNECT, max(deadline.left, 0.01))):
                if proven(ip, host_key, known_hosts, port, min(EXCHANGE, max(deadline.left, 1.0)), cancelled):
                    return True
            deadline.nap(NAP)
        return False
    finally:
        if os.path.exists(known_hosts):
            os.unlink(known_hosts)
        os.rmdir(folder)
