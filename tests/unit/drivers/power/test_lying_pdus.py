# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What answers as a PDU and is none, or lies: it costs no more than the time that was given, and no screen of text.

Scripts and net-snmp are real processes; the agent of SNMP is a socket of the test.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time

import pexpect
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets, terminal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp_tables import TABLES

#: More characters than any error of ours may have.
LONG = 3000
#: Seconds of a session here, and after which one hangs, also on a busy machine.
SECONDS, HANGS = 4.0, 60.0


def asked(settings, folder, seconds=SECONDS, secrets=None):
    """The outlets of a PDU, or the error; and the seconds that it took."""
    start = time.monotonic()
    try:
        with outlets.session("pdu-t", settings, secrets or {}, Deadline(seconds), str(folder)) as session:
            return session.status(), time.monotonic() - start
    except HeteroError as error:
        return error, time.monotonic() - start


@pytest.mark.parametrize("said", ["x", "x\r\n", "\x07", "1- Lamp\r\n"])
def test_one_that_always_has_another_byte_ends_in_its_time(monkeypatch, said):
    """Lost: minutes for each screen, to who sends a byte just before each wait ends."""
    now = itertools.count()

    class Drips:
        delaybeforesend, ptyproc, read = None, type("", (), {}), 0

        def read_nonblocking(self, size, timeout):
            self.read += 1
            if self.read > 99:
                raise pexpect.EOF("the test's own end")
            return said

    monkeypatch.setattr(terminal.pexpect, "spawn", lambda *words, **how: Drips())
    line = terminal.Line("pdu-t", ["telnet", "h"], "xyzzy", Deadline(60))
    within = Deadline(10)
    monkeypatch.setattr(type(within), "spent", property(lambda deadline: float(next(now))))
    with pytest.raises(Lost, match="no answer within"):
        line.read("menu", within=within)
    assert line._child.read < 20


@pytest.mark.parametrize(
    "body",
    ["yes on", "yes on | tr -d '\\n'", "head -c 3000000 /dev/zero | tr '\\0' x", "while :; do printf 'on '; done"],
)
def test_a_script_that_talks_without_end(tmp_path, body):
    """Lost: the node's memory, or a screen full of what a PDU says."""
    path = tmp_path / "my_pdu"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    found, seconds = asked({"driver": "command", "script": str(path), "outlets": ["5"]}, tmp_path)
    assert isinstance(found, HeteroError)
    assert len(str(found)) < LONG
    assert seconds < HANGS


def test_a_script_that_says_one_long_line_and_hangs(tmp_path):
    """Lost: the error, in the middle of megabytes of its one line. On a busy machine the one above says no more."""
    path = tmp_path / "my_pdu"
    path.write_text("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x\nexec sleep 600\n")
    path.chmod(0o755)
    found, _seconds = asked({"driver": "command", "script": str(path), "outlets": ["5"]}, tmp_path)
    assert "its script did not end within 4.0 s; last heard: xxx" in str(found)
    assert len(str(found)) < LONG
    assert len(found.facts["said"]) < LONG


def test_a_script_whose_words_are_an_essay(tmp_path):
    """Lost: the error, among megabytes of the program's last line."""
    path = tmp_path / "my_pdu"
    path.write_text("#!/bin/sh\nyes no | head -c 1000000 | tr '\\n' ' '\n")
    path.chmod(0o755)
    found, _seconds = asked({"driver": "command", "script": str(path), "outlets": ["5"]}, tmp_path, 30.0)
    assert "the script ended with 0 and said: no no" in str(found)
    assert len(str(found)) < LONG


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("seq 1 10001 | sed 's/.*/&,x,ON/'", "tells of 10001 outlets"),
        ("printf '%0300d,x,ON\\n' 1", "longer than 200 characters"),
        ("seq 1 10000 | sed 's/.*/&,x,ON/'", None),
    ],
)
def test_an_agent_that_lists_more_than_there_can_be(tmp_path, monkeypatch, listed, words):
    """Lost: a page of outlets that are none, in each error that names the outlets there are."""
    agent = tmp_path / "fence_liar"
    agent.write_text(f"#!/bin/sh\n{listed}\n")
    agent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found, _seconds = asked({"driver": "fence", "agent": "fence_liar", "host": "h"}, tmp_path, 60.0)
    assert words in str(found) if words else len(found) == 10000


# ---- SNMP


def tlv(tag, *parts):
    """A value as BER encodes it."""
    body = b"".join(parts)
    size = bytes([len(body)]) if len(body) < 128 else b"\x82" + len(body).to_bytes(2, "big")
    return bytes([tag]) + size + body


def number(value):
    return tlv(2, value.to_bytes(5, "big").lstrip(b"\0") or b"\0")


def oid(text):
    first, second, *rest = map(int, text.split("."))
    body = bytes([40 * first + second])
    for part in rest:
        digits = [part & 0x7F]
        while part > 0x7F:
            part >>= 7
            digits.insert(0, part & 0x7F | 0x80)
        body += bytes(digits)
    return tlv(6, body)


(STATE,) = [table.state for table in TABLES if table.name == "rPDU"]
KIND = tlv(0x30, oid("1.3.6.1.2.1.1.2.0"), oid("1.3.6.1.4.1.318.1.3.4.5"))


@contextlib.contextmanager
def agent(lie):
    """An agent that answers the Nth question by lie(N, its request id): (request id, a varbind)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        over, asked_of = threading.Event(), []

        def serve():
            while not over.is_set():
                with contextlib.suppress(socket.timeout):
                    question, who = server.recvfrom(65536)
                    asked_of.append(question)
                    at = next(n for n in range(len(question)) if question[n] in (0xA0, 0xA1)) + 2
                    size = question[at + 1]
                    given = int.from_bytes(question[at + 2 : at + 2 + size], "big")
                    request, bound = lie(len(asked_of) - 1, given)
                    answer = tlv(0xA2, number(request), number(0), number(0), tlv(0x30, bound))
                    server.sendto(tlv(0x30, number(0), tlv(4, b"public"), answer), who)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield {"driver": "snmp", "host": "127.0.0.1", "port": server.getsockname()[1]}, asked_of
        finally:
            over.set()
            thread.join()


def row(index, value):
    return tlv(0x30, oid(f"{STATE}.{index}"), value)


LIES = {
    "another request's answer": (lambda count, request: (request + 1, KIND), "no answer by SNMP"),
    "a walk without end": (lambda count, request: (request, row(count, number(1)) if count else KIND), ""),
    "a walk that stands still": (lambda count, request: (request, row(1, number(1)) if count else KIND), ""),
    "a walk backwards": (lambda count, request: (request, row(9999 - count, number(1)) if count else KIND), ""),
    "text for a number": (lambda count, request: (request, row(count, tlv(4, b"on" * 9)) if count < 5 else KIND), ""),
    "a long text": (lambda count, request: (request, row(count, tlv(4, b"M " * 700)) if count < 5 else KIND), ""),
    "the kind of a PDU for all": (lambda count, request: (request, KIND), ""),
    "a number that is none": (lambda count, request: (request, row(1, b"\x02\x09" + b"x" * 9)), ""),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_agent_that_lies(tmp_path, lie):
    """Lost: a play that walks for ever; a traceback; or an outlet that is on by the answer to another question."""
    answer, words = LIES[lie]
    with agent(answer) as (settings, _asked_of):
        found, seconds = asked(settings, tmp_path, secrets={"community": "public"})
    assert seconds < HANGS
    if isinstance(found, HeteroError):
        assert words in str(found)
        assert len(str(found)) < LONG
    else:
        assert not words, found
        assert len(found) <= outlets.MOST_OUTLETS
        assert all(len(state) <= outlets.LONGEST for state in found.values())
        assert lie not in ("text for a number", "a long text") or set(found.values()).isdisjoint({"on", "off"})
