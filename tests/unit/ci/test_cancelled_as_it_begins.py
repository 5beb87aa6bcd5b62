# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that is cancelled at the moment at which a program of it begins. If these fail, that program runs on: a job's
command on a board that is another's by now, or a playbook that takes a board for a job that is over.
"""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci import cancelled, command
from ansible_collections.hetero.compute.extensions.ci.heteroci.playbooks import Playbooks


@pytest.fixture(params=cancelled.SIGNALS)
def begun(request, monkeypatch):
    """The programs that were begun, each with a signal before whoever begins it knows its process."""
    real, processes = subprocess.Popen, []

    def begin(*given, **named):
        processes.append(real(*given, **named))
        os.kill(os.getpid(), request.param)
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", begin)
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_its_command_has_ended_before_its_board_is_given_back(begun):
    """Lost: another job's board, on which the command goes on."""
    with pytest.raises(cancelled.Cancelled), cancelled.raised():
        command._status(["sleep", "60"], {})
    (process,) = begun
    assert process.returncode is not None


def test_its_playbook_has_ended_before_its_board_is_given_back(begun, tmp_path, monkeypatch):
    """Lost: a board until its lease is over, which the playbook takes after it was given back."""
    program = tmp_path / "ansible-playbook"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("HETERO_ANSIBLE_PLAYBOOK", str(program))
    with pytest.raises(cancelled.Cancelled), cancelled.raised():
        Playbooks(str(tmp_path)).play("provision_instance", {"flavor": "x"})
    (process,) = begun
    assert process.returncode is not None


def test_a_signal_that_comes_while_a_program_cannot_be_started_counts(monkeypatch):
    """Lost: the end of a job: it is cancelled, and told that its command is not there."""

    def begin(*_given, **_named):
        os.kill(os.getpid(), signal.SIGTERM)
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(subprocess, "Popen", begin)
    with pytest.raises(cancelled.Cancelled), cancelled.raised():
        command._status(["sleep", "60"], {})
