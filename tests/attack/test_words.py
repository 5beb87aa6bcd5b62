# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant, or a machine at a PDU's address, talks to whoever runs the plays: escape sequences, forged lines, floods;
and the next tenant of a board listens to what the last one's console kept.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import run

#: Clears the screen, sets the window's title, turns text around, and begins a line that looks like one of ours.
SEQUENCE = r"\033[2J\033]0;owned\007\342\200\256"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\u202e"
FORGED = "victim  board1  error     its disk is broken: ssh root@10.6.6.6"
RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: What reboots the board by the proxy's key, with its forced command.
LINE = "/root/.ssh/authorized_keys"


def raw(text):
    return RAW.findall(text)


def decoded(value):
    """All texts of a decoded JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from decoded(list(value) + list(value.values()))
    elif isinstance(value, list):
        for part in value:
            yield from decoded(part)


def forced(lab, command):
    """mallory's board runs this instead of a reboot when the proxy asks for one."""
    line = re.sub(r'command="[^"]*"', lambda old: f'command="{command}"', lab.ssh("mallory", f"cat {LINE}"))
    lab.ssh("mallory", f"echo {base64.b64encode(line.encode()).decode()} | base64 -d > {LINE}")


@pytest.fixture
def mallory(two):
    """mallory's authorized_keys as the proxy wrote it, afterwards too."""
    two.ssh("mallory", f"cp {LINE} /root/kept")
    yield two
    two.ssh("mallory", f"cp /root/kept {LINE}")


def test_a_console_does_nothing_to_the_terminal(two):
    """Lost: the terminal of whoever reads a tenant's console, and what they believe of other instances."""
    two.ssh("mallory", f"printf 'hello {SEQUENCE}\\r{FORGED}\\r\\n' > /dev/console")
    played = two.play("console", instance="mallory", owner="root", force="true")
    assert raw(played.output) == []
    assert f"hello {SHOWN}" in played.output
    assert not re.search(f"^{re.escape(FORGED)}", played.output, re.M)


def test_what_a_boards_command_says_is_shown_and_not_obeyed(mallory, tmp_path):
    """Lost: the same by an error, an event, the status page and its JSON, and who pipes that through jq -r."""
    forced(mallory, f"printf '{SEQUENCE}' >&2; exit 3")
    played = mallory.play("reboot_instance", expect=2, instance="mallory", how="soft", force="true")
    assert raw(played.output) == []
    assert SHOWN in played.output
    page = tmp_path / "status.html"
    played = mallory.play("status", json="true", html=page)
    (line,) = [line for line in played.output.splitlines() if line.startswith('{"proxies"')]
    texts = list(decoded(json.loads(line)))
    assert [text for text in texts if raw(text)] == []
    assert any(SHOWN in text for text in texts), "its event is there"
    assert raw(page.read_text()) == []
    assert SHOWN in page.read_text()


def test_a_board_that_floods_fills_nothing(mallory):
    """Lost: the proxy's /tmp and memory, and with them every board's boot, to one line of a tenant's."""
    forced(mallory, "touch /root/begun; echo hetero: rebooting; exec yes")
    process, most = mallory.start("reboot_instance", instance="mallory", how="soft", soft_timeout=15, force="true"), 0
    while process.poll() is None:
        most = max(most, int(mallory.on_proxy("du -s --block-size=1K /tmp").split()[0]))
        time.sleep(0.1)
    played = mallory.end(process)
    assert (played.rc, most < 4096) == (2, True), f"{most} KiB\n{played.output}"
    mallory.ssh("mallory", "rm /root/begun")  # it did flood
    played = mallory.play("reboot_instance", expect=2, instance="mallory", soft_timeout=10**6, force="true")
    assert "soft_timeout is 1000000: give a number above 0, of at most 600" in played.output


@pytest.mark.long
def test_the_next_tenant_does_not_hear_the_last_one(lab):
    """Lost: passwords and data that a tenant's programs printed on the console, to whoever gets the board next."""
    lab.provision("first", board=2)
    lab.ssh("first", "echo my password is hunter2 > /dev/console")
    assert "hunter2" in lab.play("console", instance="first", lines=100).output
    lab.terminate("first")
    assert "hunter2" not in lab.play("console", expect=2, node="board2").output
    lab.provision("next", board=2)
    lab.ssh("next", "echo good morning > /dev/console")
    heard = lab.play("console", instance="next", lines=10000).output
    assert ("good morning" in heard, "hunter2" in heard) == (True, False)
    assert "hunter2" not in lab.play("console", node="board2", lines=10000).output
    assert "is next's, of" in lab.play("console", expect=2, node="board2", owner="mallory").output
    assert "hunter2" in lab.play("console", instance="next", lines=10000, all="true").output, "an operator's"


class Pdu(threading.Thread):
    """What answers at a PDU's address by telnet: says `words` after the login, or all the time where it floods."""

    def __init__(self, words, floods=False):
        super().__init__(daemon=True)
        self.words, self.floods = words, floods
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self):
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            with client:
                try:
                    while self.floods:
                        client.sendall(self.words)
                    for said in (b"User Name : ", b"Password  : ", self.words + b"\r\n> "):
                        client.sendall(b"\r\n" + said)
                        client.recv(1000)
                except OSError:
                    continue

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.join(10)


@pytest.fixture
def pdu():
    started = []

    def start(*words):
        started.append(Pdu(*words))
        started[-1].start()
        return dict(host="127.0.0.1", port=started[-1].port, username="apc", password="apc")

    yield start
    for one in started:
        one.close()


def test_a_pdus_screen_is_shown_and_not_obeyed(pdu, tmp_path):
    """Lost: the operator's terminal, to the name that somebody gave an outlet."""
    words = " 1- Outlet \x1b[2J\x9b2J\u202e\u2066name"
    result, printed = run(tmp_path, module="pdu_info", **pdu(words.encode()), timeout=15)
    assert raw(json.dumps(result, ensure_ascii=False) + printed) == []
    assert r"\u202e\u2066name" in result["msg"]


def test_a_pdu_that_floods_is_left(pdu, tmp_path):
    """Lost: the proxy's memory, for as long as the module waits for a screen."""
    start = time.monotonic()
    result, _printed = run(tmp_path, module="pdu_info", **pdu(b"all work and no play\r\n" * 1000, True), timeout=50)
    assert "says more than 262144 characters and no screen that is known" in result["msg"]
    assert len(json.dumps(result)) < 20000
    assert time.monotonic() - start < 150
