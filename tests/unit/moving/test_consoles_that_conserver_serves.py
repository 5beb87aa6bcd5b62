# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a source says at which port of a terminal server a board's console is, conserver is to serve it.

Tests moving/source_site.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.source_site import Board
from ansible_collections.hetero.compute.tests.unit.moving.moves import MARKER, PROXY, files, moved, questions, wiring

REST = dict(arch="aarch64", vcpus=4, memory_mb=2048, local_gb=0, driver="uboot", pdu="p", outlet=1)
PDUS = {"p": {"driver": "apc", "host": "10.0.100.9", "username": "apc"}}


def consoles_of(tmp_path, lines, answers=()):
    """The wiring that comes of a labgrid exporter with one board, a, and a serial port."""
    (tmp_path / "e.yaml").write_text(f"a: {{location: r, {lines}}}\n")
    said = {**REST, "mac": "02:00:00:00:05:01", "ip": "10.0.2.1", **dict(answers)}
    result = moved(
        tmp_path / "site", "labgrid", tmp_path / "e.yaml", answers={"proxy": PROXY, "boards": {"a": said}, "pdus": PDUS}
    )
    return result, wiring(tmp_path / "site")["tftp_proxy_boards"][0]


@pytest.mark.parametrize(
    ("protocol", "type_of"), [("", "telnet"), (", protocol: rfc2217", "telnet"), (", protocol: raw", "tcp")]
)
def test_a_port_of_labgrids_is_served(tmp_path, protocol, type_of):
    """Lost: the log of each boot, of a site that moved in and whose terminal server is known."""
    _result, wire = consoles_of(tmp_path, f"NetworkSerialPort: {{host: terminals, port: 4001{protocol}}}")
    assert wire["console_from"] == {"type": type_of, "host": "terminals", "port": 4001}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("NetworkSerialPort: {host: localhost, port: 4001}", "localhost:4001 (rfc2217) of the exporter's machine"),
        ("RawSerialPort: {port: /dev/ttyUSB3}", "give {type: serial, device: /dev/ttyUSB3}"),
    ],
)
def test_what_is_at_the_exporter_is_asked(tmp_path, lines, words):
    """Lost: a console at a port of the proxy node's own, which is another one's or nobody's."""
    result, wire = consoles_of(tmp_path, lines)
    assert words in questions(result)["a", "console_from"]
    assert "console_from" not in wire


def test_an_answer_takes_the_place_of_the_other_kind(tmp_path):
    """Lost: the set-up, which takes one of both, and the log that another program writes already."""
    answer = {"console": "/var/log/conserver/a.log"}
    _result, wire = consoles_of(tmp_path, "NetworkSerialPort: {host: terminals, port: 4001}", answer)
    assert (wire["console"], "console_from" in wire) == ("/var/log/conserver/a.log", False)
    board = Board("a", "here")
    board.take("console_command", "picocom /dev/ttyUSB0")
    board.take("console_from", {"type": "ipmi"})
    assert board.said == {"console_from": {"type": "ipmi"}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("ttyUSB0", "console_from is wrong: give a table with a type (serial, telnet"),
        ({"type": "telent", "host": "a", "port": 1}, "write telnet"),
        ({"type": "command", "command": f"sshpass -p{MARKER} ssh a"}, "may hold a password"),
        ({"type": "command", "command": "{{ lookup('pipe', 'id') }}"}, "which no inventory may hold"),
    ],
)
def test_what_is_no_console_is_asked(value, words):
    """Lost: a password in an inventory, or a set-up that refuses what moving in wrote."""
    for given in (value, value if isinstance(value, str) else json.dumps(value)):
        board = Board("a", "here")
        board.take("console_from", given)
        assert words in board.asked["console_from"]
        assert MARKER not in board.asked["console_from"]
        assert board.said == {}


def test_a_cell_has_it_as_json_and_two_boards_never_one_port(tmp_path):
    """Lost: two boards' words in one log; the message of an error that asks for a report, in place of a question."""
    cell = '"{""type"": ""telnet"", ""host"": ""ts1"", ""port"": 7001}"'
    rows = [
        f"{name},02:00:00:00:00:0{number},10.0.2.{number},x86_64,1,1024,0,{cell}" for number, name in enumerate("ab", 1)
    ]
    head = "name,mac,ip,arch,vcpus,memory_mb,local_gb,console_from"
    (tmp_path / "one.csv").write_text("\n".join([head, rows[0]]) + "\n")
    moved(tmp_path / "one", "csv", tmp_path / "one.csv", answers={"proxy": PROXY})
    assert wiring(tmp_path / "one")["tftp_proxy_boards"][0]["console_from"]["port"] == 7001
    (tmp_path / "two.csv").write_text("\n".join([head, *rows]) + "\n")
    asked = questions(moved(tmp_path / "two", "csv", tmp_path / "two.csv", answers={"proxy": PROXY}))
    assert "port 7001 of ts1" in asked["a", "console_from"]
    assert "port 7001 of ts1" in asked["b", "console_from"]
    assert MARKER not in str(files(tmp_path / "two"))
