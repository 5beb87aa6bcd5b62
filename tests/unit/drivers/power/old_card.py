# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh side of a PDU as old network cards have it: paramiko's server, which is no relative of our client.

It offers just the algorithms, the host key and the ways to log in that it is told, and hands characters on between its
session and the emulated PDU's terminal. Run as a program it is that server, and must run on the system's Python, which
has paramiko: `old_card.py PDU_PORT USER PASSWORD {JSON of OFFERS}`.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

#: What a card offers: no algorithms means all that paramiko has.
OFFERS = {"kex": [], "keys": [], "ciphers": [], "macs": [], "auth": "password", "pty": True, "window": 0}
PYTHON = ("/usr/bin/python3", "-W", "ignore")
NEW_KEY = "import paramiko, sys; paramiko.{kind}.generate({bits}).write_private_key_file(sys.argv[1])"


class OldCard:
    """A card in front of an emulated PDU, as a process of its own."""

    def __init__(self, folder, pdu, key=("RSAKey", 1024), **offers):
        self.folder, self._pdu, self._offers = folder, pdu, {**OFFERS, **offers}
        self._port = 0
        self.new_host_key(*key)
        self.start()

    def new_host_key(self, kind, bits):
        """Another host key; ssh-keygen makes none of fewer than 1,024 bits."""
        path = self.folder / "host_key"
        subprocess.run([*PYTHON, "-c", NEW_KEY.format(kind=kind, bits=bits), path], check=True)
        self._offers.update(host_key=str(path), kind=kind, keys=["ssh-rsa" if kind == "RSAKey" else "ssh-dss"])

    def start(self):
        secrets = self._pdu.secrets
        words = [self._port, self._pdu.port, secrets["username"], secrets["password"], json.dumps(self._offers)]
        argv = [*PYTHON, Path(__file__).resolve(), *map(str, words)]
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert "listens on" in line, (self.folder / "log").read_text()
        self._port = int(line.split()[-1])

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def passwords(self):
        """How many it was given, right or wrong."""
        return (self.folder / "log").read_text().count("password given")

    @property
    def settings(self):
        ours = {"transport": "ssh", "port": self._port, "known_hosts": str(self.folder / "known_hosts")}
        return {**self._pdu.settings, **ours}


def serve(server, port, login, offers, paramiko):
    """Sessions, each to its end."""

    class Door(paramiko.ServerInterface):
        """Who may log in, and how."""

        def __init__(self):
            self.shell = threading.Event()

        def get_allowed_auths(self, _user):
            return offers["auth"]

        def check_auth_password(self, user, password):
            return self._said([user, password], "password")

        def check_auth_interactive(self, user, _submethods):
            self._user = user
            return paramiko.InteractiveQuery("", "", ("Password: ", False))

        def check_auth_interactive_response(self, answers):
            return self._said([self._user, *answers], "keyboard-interactive")

        def _said(self, given, way):
            print("password given", file=sys.stderr, flush=True)
            return paramiko.AUTH_SUCCESSFUL if given == login and way in offers["auth"] else paramiko.AUTH_FAILED

        def check_channel_request(self, _kind, _number):
            return paramiko.OPEN_SUCCEEDED

        def check_channel_pty_request(self, *_terminal):
            return offers["pty"]

        def check_channel_shell_request(self, _channel):
            self.shell.set()
            return True

    def session(client):
        door, size = Door(), offers["window"]
        transport = paramiko.Transport(client, *((size, size) if size else ()))
        for name in ("kex", "keys", "ciphers", "macs"):
            if offers[name]:  # its own setters refuse names that paramiko does not have
                setattr(transport, f"_preferred_{name}", tuple(offers[name]))
        transport.add_server_key(getattr(paramiko, offers["kind"]).from_private_key_file(offers["host_key"]))
        transport.start_server(server=door)
        channel = transport.accept(30)
        if channel is not None and door.shell.wait(30):
            talk(channel, port, login)
        transport.close()

    while True:
        threading.Thread(target=session, args=(server.accept()[0],), daemon=True).start()


def talk(channel, port, login):
    """Log in at the emulator, as the session is logged in already, and hand on what is typed and shown."""
    with socket.create_connection(("127.0.0.1", port), 10) as pdu:
        said = b""
        for prompt, answer in zip((b"User Name : ", b"Password  : "), login):
            while prompt not in said:
                said += pdu.recv(1024)
            pdu.sendall(f"{answer}\r".encode())
        while True:
            ready = select.select([channel, pdu], [], [])[0]
            for source, target in ((channel, pdu), (pdu, channel)):
                data = source.recv(4096) if source in ready else None
                if data == b"":
                    return
                target.sendall(data or b"")


if __name__ == "__main__":
    import paramiko  # before anybody is told that it listens: it takes seconds on a busy machine

    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listening:
        print("listens on", listening.getsockname()[1], flush=True)
        serve(listening, int(sys.argv[2]), sys.argv[3:5], json.loads(sys.argv[5]), paramiko)
