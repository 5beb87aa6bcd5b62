# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ending an instance whose board another verb waits for. If these fail, that takes as long as the boot may; or what a
killed process left ends boots that are wanted.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.end_requests import EndRequest

JACKIE = EndRequest("jackie", [12.5])


@pytest.fixture
def run_folder(tmp_path):
    return str(tmp_path / "run")


def test_it_is_asked_for_as_long_as_somebody_waits(run_folder):
    assert end_requests.of(run_folder, "board0") is None
    with end_requests.asked(run_folder, "board0", JACKIE):
        assert end_requests.of(run_folder, "board0") == JACKIE
        assert end_requests.of(run_folder, "board1") is None
    assert end_requests.of(run_folder, "board0") is None


def test_who_has_many_boards_looks_only_at_those_that_were_asked_for(run_folder):
    """Lost: a part of a proxy's time, for each board that boots, to looks at files that are not there."""
    assert end_requests.names(run_folder) == set()
    with end_requests.asked(run_folder, "board0", JACKIE):
        assert end_requests.names(run_folder) == {"board0"}


def test_that_it_is_stopped_is_told_and_that_of_an_earlier_release_is_an_end(run_folder):
    with end_requests.asked(run_folder, "board0", EndRequest("jackie", (12.5,), stays=True)):
        assert end_requests.of(run_folder, "board0") == EndRequest("jackie", [12.5], stays=True)
        with open(os.path.join(run_folder, "ends", "board0"), "w", encoding="ascii") as file:
            file.write('{"instance": "jackie", "created": [12.5]}')
        assert end_requests.of(run_folder, "board0") == JACKIE


def test_the_folder_is_roots_alone(run_folder):
    """Lost: every boot, to whoever has an account on the proxy."""
    with end_requests.asked(run_folder, "board0", JACKIE):
        folder = os.path.join(run_folder, "ends")
        assert (os.stat(folder).st_mode & 0o777, os.stat(f"{folder}/board0").st_mode & 0o777) == (0o700, 0o600)


def test_two_may_ask_and_the_first_to_go_takes_nothing_from_the_other(run_folder):
    with end_requests.asked(run_folder, "board0", JACKIE):
        with end_requests.asked(run_folder, "board0", EndRequest("jo", [])):
            assert end_requests.of(run_folder, "board0") == EndRequest("jo", [])
        assert end_requests.of(run_folder, "board0") is not None


def test_what_a_killed_process_left_asks_for_nothing(run_folder):
    """Lost: each later boot of that board."""
    ask = (
        "import os, signal, sys\n"
        "from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests as ends\n"
        "with ends.asked(sys.argv[1], 'board0', ends.EndRequest('jackie', [12.5])):\n"
        "    assert ends.of(sys.argv[1], 'board0')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", ask, run_folder], check=False, timeout=600)
    assert done.returncode == -9
    assert os.listdir(os.path.join(run_folder, "ends")) == ["board0"]
    assert end_requests.of(run_folder, "board0") is None


def test_what_is_not_written_down_yet_asks_for_nothing(run_folder):
    """Lost: a boot of somebody else's, for a request that names nobody."""
    with end_requests.asked(run_folder, "board0", JACKIE):
        for text in ("", "jackie", "[]", '{"instance": "jackie"}', '{"instance": "jackie", "created": ["soon"]}'):
            with open(os.path.join(run_folder, "ends", "board0"), "w", encoding="utf-8") as file:
                file.write(text)
            assert end_requests.of(run_folder, "board0") is None, text


def test_a_shorter_request_leaves_nothing_of_a_longer_one(run_folder):
    with end_requests.asked(run_folder, "board0", EndRequest("jackie" * 9, [1.0, 2.0])):
        pass
    with end_requests.asked(run_folder, "board0", EndRequest("jo", [])):
        assert end_requests.of(run_folder, "board0") == EndRequest("jo", [])


def test_where_it_cannot_be_written_down_the_end_waits_as_before(tmp_path):
    """Lost: the way to end an instance while the disk is full."""
    there = tmp_path / "run"
    there.write_text("")
    with end_requests.asked(str(there), "board0", JACKIE):
        assert end_requests.of(str(there), "board0") is None


def test_two_who_ask_at_once_are_heard(run_folder):
    """Lost: a board, to both of them until the deadline: the end of the longer text stood behind the shorter one."""
    with end_requests.asked(run_folder, "board0", EndRequest("a-much-longer-name", [12.5, 13.5])):
        text = b'{"instance": "jackie", "created": [12.5], "stays": false}'
        with open(os.path.join(run_folder, "ends", "board0"), "r+b") as file:
            file.write(text)  # and is not yet cut off behind it
        assert end_requests.of(run_folder, "board0") == JACKIE
        with open(os.path.join(run_folder, "ends", "board0"), "ab") as file:
            file.write(b"\0\0\0\0")
        assert end_requests.of(run_folder, "board0") == JACKIE
