# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sockets listen, by the kernel's own answers, among some that do not and that have odd names."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import unix_sockets
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

#: Names of the lengths that the kernel fills up to four bytes, and with what it would write otherwise in a table.
NAMES = [b"a", b"ab", b"abc", b"abcd", b"a\nb", b"a\0b", b"@a", b"\xff", b"x" * 107]


def test_a_socket_is_found_by_its_very_name(tmp_path, monkeypatch):
    """Lost: every verb of a host, to an account that names a socket as another one's line in /proc/net/unix."""
    with own_network(), ExitStack() as stack:
        made = {}
        for name in NAMES:
            door = stack.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(b"\0" + name)
            door.listen()
            made[name] = os.fstat(door.fileno()).st_ino
        bound, by_path = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _time in range(2))
        bound.bind(b"\0does not listen")
        monkeypatch.chdir(tmp_path)  # a path of a socket has at most 107 bytes
        by_path.bind(b"by-path")
        by_path.listen()
        assert {name: unix_sockets.listening(name) for name in NAMES} == {
            name: {made[name]: os.geteuid()} for name in NAMES
        }
        for name in (b"does not listen", b"by-path", b"b", b"a@b", b""):
            assert unix_sockets.listening(name) == {}


def test_many_sockets_are_many_answers():
    """Lost: a monitor, behind as many sockets as fill the kernel's first answer."""
    with own_network(), ExitStack() as stack:
        doors = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _time in range(900)]
        for number, door in enumerate(doors):
            door.bind(f"\0{number:0100}")
            door.listen()
        seen = [unix_sockets.listening(f"{number:0100}".encode()) for number in (0, 450, 899)]
        assert [set(one) for one in seen] == [{os.fstat(doors[number].fileno()).st_ino} for number in (0, 450, 899)]


def test_a_kernel_that_does_not_say_whose_a_socket_is(monkeypatch):
    """Lost: a monitor of root's, which would count as nobody's there."""
    monkeypatch.setattr(unix_sockets, "UDIAG_SHOW_UID", 0)
    with own_network(), socket.socket(socket.AF_UNIX) as door:
        door.bind(b"\0a")
        door.listen()
        assert unix_sockets.listening(b"a") == {os.fstat(door.fileno()).st_ino: None}


def test_a_refusal_of_the_kernels_is_an_error(monkeypatch):
    """Lost: a monitor that is there, and of which a kernel without unix_diag says nothing."""
    monkeypatch.setattr(unix_sockets, "SOCK_DIAG_BY_FAMILY", 99)
    with pytest.raises(OSError, match="sock_diag"):
        unix_sockets.listening(b"a")
