# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks of a CI's job that do not end by themselves. If these fail, a runner waits for one without an end, and so
do the next tries of its job; or one that wipes disks for hours is ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci import names, playbooks
from ansible_collections.hetero.compute.extensions.ci.heteroci.board import Board, Request
from ansible_collections.hetero.compute.extensions.ci.heteroci.playbooks import Playbooks
from ansible_collections.hetero.compute.tests.unit.ci.conftest import LIMIT


@pytest.fixture
def ansible(tmp_path, monkeypatch):
    """A function that makes ansible-playbook lines of a shell."""
    monkeypatch.setattr(playbooks, "LOOKS", 0.05)
    monkeypatch.setattr(playbooks, "IDLE", 5)
    program = tmp_path / "ansible-playbook"
    monkeypatch.setenv("HETERO_ANSIBLE_PLAYBOOK", str(program))

    def is_lines(lines):
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)

    return is_lines


@pytest.mark.parametrize("quiet", [False, True])
def test_one_for_which_the_processor_does_nothing_is_ended(ansible, tmp_path, capfd, quiet):
    """Lost: a runner, and its job, to an inventory that waits for a server that is not there."""
    ansible("echo begun\nsleep 600; exit 0")
    outcome = Playbooks(str(tmp_path)).play("terminate_instance", {}, quiet)
    assert (outcome["told"], outcome["text"]) == (
        False, "terminate_instance ended with -15 and told no outcome; why is said above"
    )  # fmt: skip
    said = capfd.readouterr().err
    assert "terminate_instance hangs, and is ended: the processor had nothing to do for it for " in said
    assert (outcome["said"] if quiet else said.splitlines(keepends=True)[0]) == "begun\n"


def test_a_board_whose_end_hangs_is_told(ansible, tmp_path):
    """Lost: the end of `board give-back`, and of the process that keeps a killed job's board."""
    ansible("sleep 600; exit 0")
    board = Board(Request("mine", {}, state=str(tmp_path / "state")))
    board._key()
    error = board.give_back()
    assert (error.code, "terminate_instance ended with -15 and told no outcome" in error.why) == (115, True)
    assert os.path.exists(os.path.join(board.request.folder, "key"))


@pytest.mark.parametrize("spent", ["some", None])
def test_one_that_lasts_is_not_ended(ansible, tmp_path, monkeypatch, spent):
    """Lost: the disks of a board, half wiped: that takes hours, and with -v nothing is said meanwhile; and the same
    where nothing can be told of the processor's work.
    """
    looks, over = [], tmp_path / "over"

    def work(_session):
        looks.append(time.monotonic())
        if len(looks) == 20:
            over.touch()
        return spent and len(looks)

    monkeypatch.setattr(playbooks, "spent", work)
    given = json.dumps(dict(ending="given", text="", blame=None, console=[], instances=[]))
    ansible(f"while [ ! -e {over} ]; do sleep 0.02; done; echo '{given}' > $HETERO_OUTCOME")
    outcome = Playbooks(str(tmp_path)).play("terminate_instance", {})
    assert (outcome["ending"], outcome["told"], len(looks) >= 20) == ("given", True, True)


def test_the_work_for_all_processes_of_a_playbook_counts(tmp_path):
    """Lost: a board, whose playbook is ended as one that hangs since a program of the site's runs it as its child."""
    lines = "while :; do :; done & echo $$; read -r line; kill $!"
    with subprocess.Popen(
        ["/bin/sh", "-c", lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert int(process.stdout.readline()) == process.pid
        first, until = names.spent(process.pid), time.monotonic() + LIMIT
        while names.spent(process.pid) <= first + 1:
            assert time.monotonic() < until
        process.communicate(b"over\n")


def test_what_a_playbook_has_left_is_waited_for_by_nobody(ansible, tmp_path):
    """Lost: the end of a job: what a playbook that was killed has left had its output, which was read to its end."""
    ansible("setsid sleep 600 & echo $!; exit 3")
    outcome = Playbooks(str(tmp_path)).play("console", {}, quiet=True)
    os.kill(int(outcome["said"]), 9)
    assert outcome["text"] == "console ended with 3 and told no outcome; why is said above"
