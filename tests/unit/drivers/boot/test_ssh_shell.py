# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's shell over the ssh client, by a client that runs the command here. If these fail, what the proxy does on a
board is taken for done when it is not. With a real client and server it is in test_pxe.py.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import NoProgram
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh_shell import SshShell

#: Runs the last word, as sshd has a shell run it.
RUNS = 'for command; do :; done\nexec sh -c "$command"\n'


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A board's shell; shell.client(text) is what its client does."""
    made = SshShell("board0", "10.0.2.1", "ssh-ed25519 AAAA", str(tmp_path / "key"))

    def client(text):
        (tmp_path / "ssh").write_text(f"#!/bin/sh\n{text}")
        (tmp_path / "ssh").chmod(0o755)

    client(RUNS)
    made.client = client
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return made


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.tar"
    path.write_bytes(b"x" * 200_000)
    return path


def test_words_arrive_as_they_are(shell):
    """Lost: a command with a blank in it, to another command."""
    words = ["a b", "$HOME", "'", "*"]
    assert shell.run(["printf", r"%s\n", *words], Deadline(20)).splitlines() == words


def test_what_a_command_reads_comes_from_the_file(shell, file):
    """Lost: the archive that a board unpacks."""
    assert shell.run(["wc", "-c"], Deadline(20), stdin=str(file)).strip() == "200000"


@pytest.mark.parametrize(("script", "error", "said"), [
    ("echo no space >&2; exit 1", HeteroError, "board0: a script ended with 1 and said: no space: look at its console"),
    ("exit 3", HeteroError, "board0: a script ended with 3 and said: nothing: look at its console"),
    ("exit 127", NoProgram, "name an image that has this program"),
    ("echo closed by remote host >&2; exit 255", Lost, "the connection to it is lost (closed by remote host)"),
])  # fmt: skip
def test_another_end_than_0_is_an_error(shell, script, error, said):
    """Lost: a wipe that did not run, taken for one that did; or the board's name, for its image's fault."""
    with pytest.raises(error) as raised:
        shell.run(["sh", "-c", script], Deadline(20))
    assert raised.type is error
    assert said in str(raised.value)


def test_a_command_that_does_not_end_ends_with_its_time(shell):
    """Lost: the verb, and the boards beside this one."""
    deadline = Deadline(0.3)
    with pytest.raises(TimedOut, match=r"^board0: sleep 60 .*: look at its console"):
        shell.run(["sleep", "60"], deadline)


def test_a_file_arrives_whole(shell, file, tmp_path):
    """Lost: the root, to a file that is cut off."""
    shell.put(str(file), str(tmp_path / "there"), Deadline(20))
    assert (tmp_path / "there").read_bytes() == file.read_bytes()


def test_a_file_that_does_not_arrive_whole_is_an_error(shell, file):
    """Lost: the same, to a board whose disk is full and whose shell does not tell."""
    shell.client("head -c 1000 > /dev/null; echo 1000\n")
    said = r"board0: 200000 bytes are to go to /x, \d+ went, 1000 arrived: look at the space"
    with pytest.raises(HeteroError, match=said):
        shell.put(str(file), "/x", Deadline(20))


def test_a_board_that_takes_nothing_ends_with_the_time(shell, file):
    """Lost: the verb, to a board that hangs while a file goes there."""
    shell.client("exec sleep 60\n")
    with pytest.raises(TimedOut, match=r"\d+ of 200000 bytes arrived in 0\.5 s"):
        shell.put(str(file), "/x", Deadline(0.5))


def test_a_node_without_a_client_says_so(shell, monkeypatch):
    """Lost: which package to install."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HeteroError, match="ssh: the ssh client is not installed: install openssh-client on "):
        shell.run(["true"], Deadline(5))
