# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `console_from` may say, and what is said of one that is wrong."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.console_lines import CONSOLE_FROM, TYPES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import WIRE

RIGHT = [
    {"type": "serial", "device": "/dev/ttyUSB0"},
    {"type": "serial", "device": "/dev/ttyS1", "baud": "9600", "parity": "even", "flow": "rts"},
    {"type": "telnet", "host": "ts1", "port": 2004},
    {"type": "tcp", "host": "10.0.9.1", "port": "4001"},
    {"type": "ssh", "host": "ts1", "user": "port7", "key": "/etc/hetero/ts1.key", "host_key": "ssh-ed25519 AAAA"},
    {"type": "ipmi"},
    {"type": "socket", "path": "/run/board3"},
    {"type": "command", "command": "picocom /dev/ttyUSB3"},
]
WRONG = [
    ("/dev/ttyUSB0", 'c: is "/dev/ttyUSB0": give a table with a type'),
    ({"device": "/dev/ttyUSB0"}, "c: is {"),
    ({"type": "seriell", "device": "/dev/ttyUSB0"}, 'c.type: no such type "seriell": write serial'),
    ({"type": "serial"}, "c.device: type serial needs it: name it"),
    ({"type": "serial", "device": "/dev/ttyUSB0", "baud": 115201}, "c.baud: is 115201: give one of 300"),
    ({"type": "serial", "device": "/dev/ttyUSB0", "port": 3}, "c.port: is no key of type serial: use device"),
    ({"type": "telnet", "host": "-oProxyCommand=x", "port": 1}, 'c.host: is "-oProxyCommand=x": give a name'),
    ({"type": "tcp", "host": "ts1", "port": 70000}, "c.port: is 70000: give a whole number from 1 to 65535"),
    ({"type": "socket", "path": "/run/a\nb"}, 'c.path: is "/run/a\\nb": give one line'),
    ({"type": "command", "command": "true\nconsole x {"}, 'c.command: is "true\\nconsole x {": give one line'),
]


def read(said):
    mistakes = []
    line = CONSOLE_FROM.read(said, "c", mistakes)
    return line, [str(mistake) for mistake in mistakes]


@pytest.mark.parametrize("said", RIGHT, ids=lambda said: said["type"])
def test_each_type_is_read(said):
    """Lost: a console of that kind."""
    line, mistakes = read(said)
    assert mistakes == []
    assert line.type == said["type"]
    assert {key: line.as_said[key] for key in said if key not in ("baud", "port")}.items() <= said.items()


def test_all_types_are_tried():
    """Lost: the test of a type that somebody adds."""
    assert {said["type"] for said in RIGHT} == set(TYPES)


@pytest.mark.parametrize(("said", "words"), WRONG)
def test_one_line_says_what_is_wrong(said, words):
    """Lost: an afternoon with conserver's parser; and commands that a host's name brings along."""
    line, mistakes = read(said)
    assert line is None
    assert len(mistakes) == 1
    assert mistakes[0].startswith(words)


def test_two_programs_do_not_write_one_log():
    """Lost: which of two logs a boot that stalled is judged by."""
    mistakes = []
    WIRE.read({"console": "/var/log/board3.log", "console_from": {"type": "ipmi"}}, "boards.3", mistakes)
    assert [str(mistake.thing) for mistake in mistakes] == ["boards.3.console"]
    assert "stands beside console_from" in str(mistakes[0])
