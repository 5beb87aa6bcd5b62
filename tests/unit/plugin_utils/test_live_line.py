# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The live line of a terminal. If these fail, it stands in the middle of what a play says, or a play hangs for it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import live_line
from ansible_collections.hetero.compute.plugins.plugin_utils.live_line import BACK, KEEP, UP, LiveLine


@pytest.fixture
def terminal(monkeypatch):
    """A display, its live line, and a function that reads what both wrote since."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    monkeypatch.setattr(live_line.atexit, "register", lambda function: None)
    monkeypatch.setattr(LiveLine, "_width", lambda self: 20)
    display = SimpleNamespace(display=lambda text, color=None: os.write(writer, f"{text}\n".encode()))

    def read():
        try:
            return os.read(reader, 4096).decode()
        except BlockingIOError:
            return ""

    yield SimpleNamespace(display=display, live=LiveLine(display, writer), read=read, fd=writer)
    os.close(reader)
    os.close(writer)


def test_each_other_line_is_printed_in_its_place(terminal):
    terminal.live.write("boot: 3 s")
    terminal.live.write("boot: 4 s")
    terminal.display.display("jackie runs", color="green")
    assert terminal.read() == f"boot: 3 s\n{KEEP}{UP}boot: 4 s{BACK}{UP}jackie runs\n"
    terminal.display.display("so does bob")
    assert terminal.read() == "so does bob\n", "there is nothing to take away"


def test_it_is_never_wider_than_the_terminal(terminal):
    """Lost: the screen, line by line, for what is wrapped cannot be taken away."""
    terminal.live.write("x" * 50)
    assert terminal.read() == "x" * 19 + "\n"
    terminal.live.clear()
    terminal.read()
    terminal.live.write("x" * 50, ": 12 s")
    assert terminal.read() == "x" * 13 + ": 12 s\n", "what a task has taken is seen"
    terminal.live.clear()
    terminal.read()
    terminal.live.write("x" * 50, "y" * 50)
    assert terminal.read() == "y" * 19 + "\n"


def test_it_is_gone_for_good_at_the_end(terminal):
    terminal.live.write("boot: 3 s")
    terminal.live.end()
    terminal.live.write("boot: 4 s")
    assert terminal.read() == f"boot: 3 s\n{UP}"


def test_a_question_is_left_alone(terminal):
    """Lost: the question, and with it the play, which waits for an answer to it."""
    terminal.live.write("boot: 3 s")
    terminal.live.hold()
    terminal.live.write("boot: 4 s")
    assert terminal.read() == f"boot: 3 s\n{UP}"
    terminal.live.go_on()
    terminal.live.write("boot: 5 s")
    assert terminal.read() == "boot: 5 s\n"


def test_a_name_that_cannot_be_written_ends_nothing(terminal):
    terminal.live.write("wipe \udcff")
    assert terminal.read() == "wipe ?\n"


def test_a_worker_that_was_forked_while_it_is_written_does_not_wait_for_it(terminal):
    """Lost: the play: the lock that a worker inherits is never released."""
    with terminal.live._lock:
        pid = os.fork()
        if pid == 0:
            try:
                terminal.display.display("from a worker")
            finally:
                os._exit(0)
        deadline = os.times().elapsed + 20
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if os.times().elapsed > deadline:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                pytest.fail("the worker waits")
    assert terminal.read() == "from a worker\n"


def test_a_terminal_that_is_gone_ends_no_play(terminal, monkeypatch):
    monkeypatch.setattr(terminal.live, "_terminal", 10**6)
    terminal.live.write("boot: 3 s")
    assert terminal.read() == ""
