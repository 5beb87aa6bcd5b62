# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host key that a board prints on its console. If these fail, a proxy speaks to whoever said a key, or a board that
said its own is not believed.
"""

from __future__ import annotations

import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import console_key
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.console_key import ConsoleKey

KEY, OTHER = "ssh-ed25519 " + "A" * 68, "ssh-ed25519 " + "B" * 68


@pytest.fixture
def log(tmp_path):
    return tmp_path / "board3.log"


def wait(key, seconds=0.0, cancelled=None):
    deadline = Deadline(seconds or 0.05)
    return key.wait(deadline, cancelled)


def said(key, what=KEY, word=None, before=""):
    return f"{before}hetero-ram-key {word or key.word} {what}\n"


def test_a_key_is_believed_that_was_read_twice(log):
    """Lost: the board, to one character that the serial line garbled."""
    key = ConsoleKey(str(log))
    log.write_text("boot\n" + said(key))
    assert wait(key) is None
    with log.open("a") as file:
        file.write(said(key, OTHER))
        file.write(said(key, before="[Sun Nov 29 14:00:01 2026] "))
    assert wait(key) == KEY


def test_a_word_of_an_earlier_boot_is_not_this_ones(log):
    """Lost: who knows the key of a boot before, and plays the board."""
    key = ConsoleKey(str(log))
    log.write_text(said(key, word="0" * 32) * 2)
    assert wait(key) is None


def test_what_others_have_the_board_log_is_no_key(log):
    """Lost: the board, to a stranger whose name at its ssh server is such a line."""
    key = ConsoleKey(str(log))
    log.write_text(said(key, before="sshd: Invalid user ") * 2)
    assert wait(key) is None


def test_what_was_in_the_log_before_is_not_looked_at_but_in_a_new_log(log, monkeypatch):
    """Lost: the key, where the log was rotated since; or an old one, where it was not."""
    monkeypatch.setattr(console_key.secrets, "token_hex", lambda size: "ab" * size)
    log.write_text("x" * 4096)
    key = ConsoleKey(str(log))
    log.write_text(said(key) * 2)
    assert wait(key) == KEY, "it is shorter than it was, so all of it is new"
    assert wait(ConsoleKey(str(log))) is None, "the same word, but from before"


def test_only_the_end_of_a_long_log_is_read(log, monkeypatch):
    """Lost: the node's memory, to a board that prints all day."""
    monkeypatch.setattr(console_key, "MOST", 1000)
    key = ConsoleKey(str(log))
    log.write_text(said(key) * 2 + "x" * 1000)
    assert wait(key) is None
    with log.open("a") as file:
        file.write("\n" + said(key) * 2)
    assert wait(key) == KEY


def test_a_wait_that_is_cancelled_ends(log):
    """Lost: a verb that was told to stop."""
    cancelled = threading.Event()
    cancelled.set()
    deadline = Deadline(60.0)
    assert ConsoleKey(str(log)).wait(deadline, cancelled) is None
    assert deadline.left > 50
