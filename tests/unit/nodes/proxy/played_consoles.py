# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real conserver of its own port and folders, and the serial line of a board, played by a socket."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from multiprocessing import get_context

import pexpect
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import console_logs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import consoles
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.console import argv
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import files_of


def eventually(look, fits, seconds=8):
    """What `look` returns once it fits; the last of it where it never does."""
    end = time.monotonic() + seconds
    while not fits(look()) and time.monotonic() < end:
        time.sleep(0.02)
    seen = look()
    assert fits(seen), seen
    return seen


class Serial:
    """A serial line at a Unix socket: it says what it is told to, and keeps what it hears."""

    def __init__(self, path):
        self.path, self._heard, self._line = path, b"", None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        self._server.listen(1)
        self.ready = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        try:
            while True:
                line, _peer = self._server.accept()
                self._line = line
                self.ready.set()
                while True:
                    said = line.recv(4096)
                    if not said:
                        break
                    self._heard += said
        except OSError:
            return

    def say(self, text, times=1):
        assert self.ready.wait(20)
        self._line.sendall(text.encode() * times)

    def heard(self):
        return self._heard.decode()

    def close(self):
        for one in filter(None, (self._line, self._server)):
            with suppress(OSError):  # close() alone does not end a call that waits in another thread
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Conserver:
    """conserver for board0 of a site, whose console is `serial`.

    :param others: wiring of other boards, of which `bmc` feeds one as PDU bmc1.
    """

    def __init__(self, site, others=None, bmc=None):
        self.site, self.serial = site, Serial(str(site.folder / "serial"))
        self.config = site.folder / "proxy.json"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        site.tftp.mkdir(exist_ok=True)
        shutil.copy(site.folder / "tilera_boards", site.tftp / "tilera_boards")
        if bmc:
            settings = {"driver": "ipmi", "host": bmc.address, "port": bmc.port, "cipher_suite": 3}
            self._configure(pdus={"bmc1": settings})
            (site.folder / "credentials.json").write_text(json.dumps({"bmc1": bmc.secrets}))
        self.wire({"0": {"console_from": {"type": "socket", "path": self.serial.path}}, **(others or {})})
        self.proxy = site.proxy()
        self.board, self.log = self.proxy.boards[0], site.folder / "logs" / "board0.log"
        self.start()

    @property
    def files(self):
        """What a verb of the node is told: proxy.json and the database."""
        return files_of(str(self.config))

    def wire(self, boards):
        self._configure(boards=boards, console_port=self.port, console_logs=str(self.site.folder / "logs"))

    def _configure(self, **more):
        config = json.loads(self.config.read_text())
        self.config.write_text(json.dumps({**config, **more}))

    def start(self):
        consoles.written(self.proxy, "root", False)
        self.process = get_context("fork").Process(target=self._serve)
        self.serial.ready.clear()
        self.process.start()
        assert self.serial.ready.wait(20)
        # It hears signals once it answers.
        eventually(lambda: self.client("-u", check=False), lambda text: "board0" in text)

    def say(self, text):
        """Have the board say a line, and wait until it is logged."""
        self.serial.say(f"{text}\r\n")
        eventually(self.log.read_text, lambda seen: text in seen)

    def client(self, *words, check=True):
        argv = ["console", "-n", "-C", f"{self.proxy.config.consoles_folder}/console.cf", *words]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=check, text=True)
        return done.stdout

    @contextmanager
    def attached(self, who):
        words = argv(f"{self.proxy.config.consoles_folder}/console.cf", "board0", who)
        child = pexpect.spawn(words[0], words[1:], timeout=20, encoding="utf-8", env=dict(os.environ, TERM="dumb"))
        try:
            yield child
        finally:
            child.close(force=True)

    def _serve(self):
        os.setsid()
        folder = self.proxy.config.consoles_folder
        consoles.serve(folder, f"{folder}/pid", "root")

    def stop(self):
        """End all its processes, as systemd does in the end."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join(10)

    def pause(self):
        """Have all its processes stand still."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def end(self):
        self.stop()
        self.serial.close()
        self.proxy.store.close()


@pytest.fixture
def conserver(site, monkeypatch):
    """conserver that serves board0; none is left behind. It may be slow beside other tests."""
    monkeypatch.setattr(console_logs, "PATIENCE", 8.0)
    made = Conserver(site)
    yield made
    made.end()
