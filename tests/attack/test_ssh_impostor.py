# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A neighbour took the address of a board, a container or a guest, and says what the proof of its host key looks for.

It has no key, or a key of its own; it knows all words of OpenSSH's client and the true public key, which is no secret.
All three kinds of instances are proven by the same call (drivers/boot/ssh.py), which the attacks here are made against.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import ssh, ssh_reboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.reboot_key import MARK

HOST = "127.0.0.1"
VERSION = b"SSH-2.0-OpenSSH_9.2\r\n"
#: What OpenSSH's client itself says, once a server with the right key lets nobody in.
PROVEN = f"root@{HOST}: Permission denied (publickey)."
#: What it says of another key.
WRONG = (
    "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!",
    "Host key verification failed.",
    "no matching host key type found",
)
#: RFC 4250, 4.1
DISCONNECT, IGNORE, DEBUG, KEXINIT, ECDH_INIT, ECDH_REPLY = 1, 2, 4, 20, 30, 31
AUTH_FAILURE, AUTH_SUCCESS, AUTH_BANNER = 51, 52, 53


def string(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack(">I", len(data)) + data


def packet(kind, payload=b""):
    """A binary packet before any key is agreed on (RFC 4253, 6)."""
    payload = bytes([kind]) + payload
    padding = 8 - (len(payload) + 5) % 8
    padding += 8 if padding < 4 else 0
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


def disconnect(text):
    return packet(DISCONNECT, struct.pack(">I", 14) + string(text) + string(""))


def offer(key_types="ssh-ed25519", more=""):
    """A server's KEXINIT; `more` is one more cipher, of any text."""
    ciphers = "aes128-ctr" + (f",{more}" if more else "")
    lists = ["curve25519-sha256", key_types, ciphers, ciphers, "hmac-sha2-256", "hmac-sha2-256", "none", "none", "", ""]
    return packet(KEXINIT, os.urandom(16) + b"".join(map(string, lists)) + b"\0" + bytes(4))


def reply(public):
    """The answer of a key exchange: anybody's public key, and a signature that is none."""
    blob = base64.b64decode(public.split()[1])
    point = b"\x09" + bytes(31)
    return packet(ECDH_REPLY, string(blob) + string(point) + string(string("ssh-ed25519") + string(bytes(64))))


class Impostor(threading.Thread):
    """Takes connections, says `words` and hangs up when the client does; counts those that began to speak ssh."""

    def __init__(self, words, until=None):
        super().__init__(daemon=True)
        self.words = words
        self.server = socket.create_server((HOST, 0))
        self.port = self.server.getsockname()[1]
        self.asked = threading.Event()  # twice, so the first answer was judged
        self.spoke = 0

    def run(self):
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            with client:
                client.settimeout(10)
                try:
                    if client.recv(4) != b"SSH-":
                        continue  # a bare connect
                    self.spoke += 1
                    if self.spoke == 2:
                        self.asked.set()
                    client.sendall(self.words)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(4096):
                        pass
                except OSError:
                    continue

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.join(15)


@pytest.fixture
def impostor():
    started = []

    def start(words):
        started.append(Impostor(words))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.close()


def keygen(folder, name, kind="ed25519"):
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)
    return path, path.with_suffix(".pub").read_text().strip()


#: Words for each place at which a peer may speak before it proved anything, by the text that it says there.
PLACES = {
    "lines before the version": lambda text: f"{text}\r\n".encode() + VERSION + disconnect("bye"),
    "version": lambda text: f"SSH-2.0-x {text}\r\n".encode() + disconnect("bye"),
    "disconnect": lambda text: VERSION + disconnect(text),
    "line of a disconnect": lambda text: VERSION + disconnect(f"bye\r\n{text}\r\n"),
    "disconnect after the offer": lambda text: VERSION + offer() + disconnect(f"\n{text}\n"),
    "ignore": lambda text: VERSION + packet(IGNORE, string(text)) + disconnect("bye"),
    "debug": lambda text: VERSION + packet(DEBUG, b"\1" + string(f"\n{text}\n") + string("")) + disconnect("bye"),
    "banner": lambda text: VERSION + offer() + packet(AUTH_BANNER, string(f"{text}\n") + string("")),
    "refused login": lambda text: VERSION + offer() + packet(AUTH_FAILURE, string(text) + b"\0"),
    "refused login without an offer": lambda text: VERSION + packet(AUTH_FAILURE, string("publickey") + b"\0"),
    "login taken": lambda text: VERSION + packet(AUTH_SUCCESS),
    "offer that fits nothing": lambda text: VERSION + offer(f"x\n{text}\n"),
    "cipher": lambda text: VERSION + offer("x", f"\n{text}\n") + disconnect("bye"),
}


@pytest.mark.parametrize("text", [PROVEN, *WRONG], ids=["proven", "changed", "failed", "type"])
@pytest.mark.parametrize("place", PLACES)
def test_no_words_prove_anything(impostor, tmp_path, place, text):
    """Lost: a neighbour's machine handed over as the user's own, or a board cut and blamed for words on the network."""
    _key, public = keygen(tmp_path, "true")
    liar = impostor(PLACES[place](text))
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(ssh.known_hosts_line(HOST, public, liar.port) + "\n")
    assert ssh.proven(HOST, public, str(known_hosts), liar.port, 10) is False
    assert liar.spoke == 1, "the ssh client was never asked"


def test_the_public_key_is_no_proof(impostor, tmp_path):
    """Lost: whoever read a known_hosts line passes for that board."""
    _key, public = keygen(tmp_path, "true")
    liar = impostor(VERSION + offer() + reply(public))
    assert ssh.answers(HOST, public, Deadline(60), liar.asked, port=liar.port) is False
    assert liar.spoke >= 2


def test_an_impostor_in_place_of_a_container_or_guest_is_no_answer(impostor, tmp_path, monkeypatch):
    """Lost: reconcile records a stopped container or guest as running, or a sound one as taken over."""

    _key, host_key = keygen(tmp_path, "true")
    work = SimpleNamespace(address=HOST, claim=SimpleNamespace(host_key=host_key))
    monkeypatch.setattr(reconciliation, "PATIENCE", 1.0)
    answers = ssh.answers
    for text in (PROVEN, *WRONG):
        liar = impostor(PLACES["line of a disconnect"](text))

        def here(ip, host_key, deadline, cancelled=None, port=liar.port):
            return answers(ip, host_key, deadline, cancelled, port)

        monkeypatch.setattr(ssh, "answers", here)
        assert reconciliation._whose_key(work) == reconciliation.SILENT
        assert liar.spoke


def test_an_impostor_is_not_told_to_reboot(impostor, tmp_path):
    """Lost: a reboot that counts as told although the board heard nothing of it."""
    key, public = keygen(tmp_path, "true")
    liar = impostor(VERSION + disconnect(f"\n{MARK}\n"))
    told = ssh_reboot.asked(HOST, public, str(key), MARK, Deadline(20), port=liar.port)
    with pytest.raises(HeteroError, match="cannot be told"), told:
        pass
    assert liar.spoke == 1
