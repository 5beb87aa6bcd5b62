# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a play whose reader has gone, as in `make status | head`. If these fail, Ansible's process waits for ever,
at full load: what a task prints is written by the thread that takes its results, and that ends at a broken pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Of the Python that runs these tests, whatever PATH says.
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
PYTHON = {"ansible_python_interpreter": sys.executable}
SHOW = {"hetero.compute.show": {"lines": ["one line", "another"]}}
#: More than a pipe holds, so that some are yet to be written when the reader goes.
MANY = {"hetero.compute.show": {"lines": ["a line of some length, as of a board's boot"] * 3000}}
LONG = b"a line of some length, as of a board's boot\n"


@pytest.fixture
def started(tmp_path):
    """A function that starts a play which shows lines, its standard output as given."""
    end = {"ansible.builtin.copy": {"content": "done", "dest": str(tmp_path / "ended")}}
    processes = []

    def start(stdout, show=SHOW):  # pylint: disable=dangerous-default-value
        book = [{"hosts": "localhost", "gather_facts": False, "vars": PYTHON, "tasks": [show, end]}]
        (tmp_path / "book.json").write_text(json.dumps(book))
        process = subprocess.Popen(
            [PLAYBOOK, "-i", "localhost,", "-c", "local", "book.json"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, PYTHONUNBUFFERED="1"),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_play_whose_reader_has_gone_ends_all_the_same(started, tmp_path):
    """Lost: a processor, for as long as nobody looks; and what the play had still to do."""
    read, write = os.pipe()
    os.close(read)
    process = started(write)
    os.close(write)
    process.wait(timeout=60)
    assert (tmp_path / "ended").read_text() == "done"


@pytest.mark.parametrize("lines", [1, 2, 1000])
def test_a_play_whose_reader_goes_at_any_line_ends(started, tmp_path, lines):
    """Lost: the same, to `| head -3` and `| grep -q`, whose end comes while lines are on their way."""
    process = started(subprocess.PIPE, MANY)
    read = 0
    while read < lines:
        read += process.stdout.readline() == LONG
    process.stdout.close()
    process.wait(timeout=60)
    assert (tmp_path / "ended").read_text() == "done"


def test_who_reads_gets_the_lines(started):
    """Lost: every line of every verb."""
    said, _errors = started(subprocess.PIPE).communicate(timeout=600)
    assert b"one line\nanother\n" in said


def test_a_file_gets_the_lines(started, tmp_path):
    """Lost: the log of a job; and the file is not opened anew, which would cut it."""
    with (tmp_path / "log").open("w") as log:
        started(log).wait(timeout=60)
    assert "one line\nanother\n" in (tmp_path / "log").read_text()
