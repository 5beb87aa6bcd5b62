# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh side of an emulated PDU: Debian's sshd, unmodified, whose only program is a line to the emulator's terminal.

sshd knows users of the machine only, so it runs in a mount namespace with a password file of its own.
Run as a program, it is that line: `emulated_ssh.py PORT PASSWORD` logs in at the emulator and hands characters on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tty
from functools import lru_cache
from pathlib import Path

ISOLATED = """\
mount --bind "$0/passwd" /etc/passwd
mount --bind "$0/shadow" /etc/shadow
mount -t tmpfs none /run
mkdir /run/sshd
exec /usr/sbin/sshd -D -e -f "$0/sshd_config"
"""


@lru_cache(maxsize=None)
def rsa_key(number):
    """A private key and its public one, others for each number: to make them takes 0.3 s of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", f"{folder}/key"], check=True)
        return Path(folder, "key").read_text(), Path(folder, "key.pub").read_text()


class EmulatedSsh:
    """sshd on a free port of the loopback in front of an emulated PDU, for its user and password."""

    def __init__(self, folder, pdu, *options):
        self.folder, self._pdu = folder, pdu
        self.host_key = folder / "host_key"
        self.process, self._had = None, 0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        user, password = pdu.secrets["username"], pdu.secrets["password"]
        salted = subprocess.check_output(["openssl", "passwd", "-6", "-stdin"], input=password, text=True).strip()
        (folder / "passwd").write_text(
            f"root:x:0:0::/:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n{user}:x:0:0::/:/bin/sh\n"
        )
        (folder / "shadow").write_text(f"root:*:1::::::\nsshd:*:1::::::\n{user}:{salted}:1::::::\n")
        for name in ("passwd", "shadow"):
            (folder / name).chmod(0o600 if name == "shadow" else 0o644)
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.host_key}\nPidFile none\nUsePAM no\n"
            "PasswordAuthentication yes\nPubkeyAuthentication no\nPermitRootLogin yes\nPrintMotd no\nPrintLastLog no\n"
            f"ForceCommand {sys.executable} {Path(__file__).resolve()} {pdu.port} {password}\n"
            + "".join(f"{option}\n" for option in options)
        )
        self.new_host_key()
        self.start()

    def new_host_key(self):
        """Another key than those that it had before."""
        self._had += 1
        self.host_key.touch(0o600)
        for path, text in zip((self.host_key, self.folder / "host_key.pub"), rsa_key(self._had)):
            path.write_text(text)

    def start(self):
        argv = ["unshare", "--mount", "sh", "-ec", ISOLATED, str(self.folder)]
        with open(self.folder / "sshd.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        log = self.folder / "sshd.log"
        for _attempt in range(3000):
            if "Server listening" in log.read_text() or self.process.poll() is not None:
                break
            time.sleep(0.02)
        assert self.process.poll() is None, log.read_text()

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)
        (self.folder / "sshd.log").unlink()

    @property
    def settings(self):
        known_hosts = str(self.folder / "state" / "pdu known hosts")
        return {**self._pdu.settings, "transport": "ssh", "port": self.port, "known_hosts": known_hosts}


def line(port, password):
    """Log in at the emulator, as its ssh side is logged in already, and hand on what is typed and shown."""
    with socket.create_connection(("127.0.0.1", port), 10) as pdu:
        said = b""
        for prompt, answer in ((b"User Name : ", "apc"), (b"Password  : ", password)):
            while prompt not in said:
                data = pdu.recv(1024)
                if not data:
                    os.write(1, said.replace(b"\xff", b""))
                    return
                said += data
            pdu.sendall(f"{answer}\r".encode())
        tty.setraw(0)
        while True:
            ready, _out, _odd = select.select([0, pdu], [], [])
            for source, target in ((0, pdu.sendall), (pdu, lambda data: os.write(1, data))):
                if source in ready:
                    data = os.read(0, 1024) if source == 0 else pdu.recv(4096)
                    if not data:
                        return
                    target(data)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        line(int(sys.argv[1]), sys.argv[2])
