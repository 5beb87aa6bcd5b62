# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof that a board runs its own root: a real sshd on the loopback, with the right key, a wrong one, or none."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import ssh

HOST = "127.0.0.1"


def free_port():
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return sock.getsockname()[1]


def make_key(folder, name, kind="ed25519"):
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)
    return path, path.with_suffix(".pub").read_text().strip()


@pytest.fixture
def sshd(sshd_program, tmp_path):
    """start(private key path, port): a real sshd that lets nobody in, in its own mount namespace for /run/sshd."""
    started = []

    def start(key, port):
        config = tmp_path / f"sshd_config.{port}"
        config.write_text(
            f"ListenAddress {HOST}:{port}\nHostKey {key}\nPidFile none\nUsePAM no\nPasswordAuthentication no\n"
        )
        script = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$0" -D -e -f "$1"'
        argv = ["unshare", "--mount", "sh", "-c", script, sshd_program, str(config)]
        with open(tmp_path / f"sshd.{port}.log", "wb") as log:
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    yield start
    for process in started:
        process.terminate()
        process.wait(60)


def test_the_right_key_is_proven(sshd, tmp_path):
    """A board that is up would be waited for until the timeout, and then be quarantined."""
    key, public = make_key(tmp_path, "right")
    port = free_port()
    sshd(key, port)
    assert ssh.answers(HOST, public, Deadline(60), port=port) is True


def test_a_board_is_seen_at_once_when_it_comes_up(sshd, tmp_path):
    """The time between sshd's start and its being seen is added to every provision."""
    key, public = make_key(tmp_path, "late")
    port = free_port()
    timer = threading.Timer(0.6, sshd, (key, port))
    timer.start()
    start = time.monotonic()
    assert ssh.answers(HOST, public, Deadline(60), port=port) is True
    spent = time.monotonic() - start
    timer.join()
    assert 0.6 <= spent < 30.0


def test_a_proof_needs_no_space_on_a_disk(sshd, tmp_path, monkeypatch):
    """Lost: the power of boards in use on a proxy whose /tmp is full, which nobody could prove theirs."""
    key, public = make_key(tmp_path, "right")
    port = free_port()
    sshd(key, port)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nothing"))
    assert ssh.answers(HOST, public, Deadline(60), port=port) is True


def test_another_key_is_the_previous_tenant(sshd, tmp_path):
    """A user would be sent to a machine that is not theirs."""
    key, _public = make_key(tmp_path, "theirs")
    _key, expected = make_key(tmp_path, "ours")
    port = free_port()
    sshd(key, port)
    with pytest.raises(ssh.WrongHostKey) as error:
        ssh.answers(HOST, expected, Deadline(60), port=port)
    assert HOST in str(error.value)


def test_a_key_of_another_kind_is_another_key(sshd, tmp_path):
    """A machine with only an ECDSA key is not ours when ours is Ed25519; waiting for it would blame the image."""
    key, _public = make_key(tmp_path, "theirs", "ecdsa")
    _key, expected = make_key(tmp_path, "ours")
    port = free_port()
    sshd(key, port)
    with pytest.raises(ssh.WrongHostKey):
        ssh.answers(HOST, expected, Deadline(60), port=port)


def test_an_rsa_key_is_proven_by_its_modern_signatures(sshd, tmp_path):
    """sshd refuses "ssh-rsa" signatures today; boards with an RSA key would never be running."""
    key, public = make_key(tmp_path, "rsa", "rsa")
    port = free_port()
    sshd(key, port)
    assert ssh.answers(HOST, public, Deadline(60), port=port) is True


def test_nothing_listening_ends_at_the_deadline(tmp_path):
    """A dead board would hold the play for ever."""
    _key, public = make_key(tmp_path, "none")
    start = time.monotonic()
    assert ssh.answers(HOST, public, Deadline(0.5), port=free_port()) is False
    assert time.monotonic() - start < 30


class Liar(threading.Thread):
    """Accepts connections, says `words`, and keeps the line open."""

    def __init__(self, words):
        super().__init__(daemon=True)
        self.words = words
        self.server = socket.create_server((HOST, 0))
        self.port = self.server.getsockname()[1]
        self.taken = []
        self.asked_twice = threading.Event()

    def run(self):
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            self.taken.append(client)
            client.sendall(self.words)
            if len(self.taken) == 2:
                self.asked_twice.set()

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.join(5)
        for client in self.taken:
            client.close()


@pytest.mark.parametrize("words", [b"", f"root@{HOST}: Permission denied (none).\r\n".encode()])
def test_words_are_no_proof(tmp_path, words):
    """A port that is open, or that says what the ssh client would say, would be taken for the board."""
    _key, public = make_key(tmp_path, "unproven")
    liar = Liar(words)
    liar.start()
    try:
        assert ssh.answers(HOST, public, Deadline(60), liar.asked_twice, port=liar.port) is False
    finally:
        liar.close()
    assert len(liar.taken) >= 2, "the ssh client was never asked"


def test_a_board_that_prints_without_end_fills_no_memory_and_proves_nothing(tmp_path, monkeypatch):
    """Lost: the proxy node's memory, to a tenant whose sshd lets anybody in and whose shell prints gigabytes."""
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin" / "ssh"
    client.write_text("#!/bin/sh\nhead -c 50000000 /dev/zero >&2\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert ssh.proven("10.0.2.1", "ssh-ed25519 AAAA", str(tmp_path / "known"), 22, 60.0) is False


def test_a_cancelled_wait_ends(tmp_path):
    """The module would not end before the timeout of a board that failed otherwise."""
    _key, public = make_key(tmp_path, "cancelled")
    liar = Liar(b"")
    liar.start()
    cancelled = threading.Event()
    timer = threading.Timer(0.4, cancelled.set)
    timer.start()
    start = time.monotonic()
    try:
        assert ssh.answers(HOST, public, Deadline(120), cancelled, port=liar.port) is False
    finally:
        liar.close()
    assert time.monotonic() - start < 60


def test_known_hosts_line():
    """Users paste this line; a comment or a port in the wrong form would make ssh ask, or refuse."""
    assert ssh.known_hosts_line("10.0.2.1", "ssh-ed25519 AAAA root@x") == "10.0.2.1 ssh-ed25519 AAAA"
    assert ssh.known_hosts_line("10.0.2.1", "ssh-ed25519 AAAA\necdsa-sha2-nistp256 BBBB x", 2222) == (
        "[10.0.2.1]:2222 ssh-ed25519 AAAA\n[10.0.2.1]:2222 ecdsa-sha2-nistp256 BBBB"
    )
    with pytest.raises(BadInput):
        ssh.known_hosts_line("10.0.2.1", None)
