# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a node, by the programs of Ansible's connections. If these fail, one node that prints without end
fills the controller's memory (2.8 GB in 30 s), and all plays there end.

Tests plugin_utils/short_calls.py.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import short_calls
from ansible_collections.hetero.compute.plugins.plugin_utils.bounded_reading import Endless, at_most
from ansible_collections.hetero.compute.tests.unit.callback.test_quiet import BIN, environment

PIPES = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
BOOK = [
    {
        "hosts": "liar",
        "gather_facts": False,
        "tasks": [
            {"hetero.compute.board_info": {}, "register": "said", "ignore_errors": True},
            {"hetero.compute.show": {"lines": ["said: {{ said.msg }}"]}},
        ],
    }
]


def as_ssh_reads(program):
    """Read a program's outputs as the connection plugin ssh does."""
    for file in (program.stdout, program.stderr):
        os.set_blocking(file.fileno(), False)
    said = b""
    while True:
        for file in select.select([program.stdout, program.stderr], [], [])[0]:
            said += file.read() or b""


@pytest.mark.parametrize("read", [as_ssh_reads, lambda program: program.communicate()])
@pytest.mark.parametrize("where", ["", " >&2"])
def test_a_program_that_prints_without_end_is_read_to_the_bound_and_ended(read, where):
    with at_most(10**6):
        program = subprocess.Popen(["sh", "-c", f"exec yes{where}"], **PIPES)
        with pytest.raises(Endless):
            read(program)
    assert program.wait(timeout=200) == -9


def test_what_is_not_more_is_read_whole_and_as_ever():
    """Lost: what a module answers, or the module, which comes by standard input."""
    data = os.urandom(10**6)
    with at_most(10**6):
        program = subprocess.Popen(["sh", "-c", "cat; echo of no use >&2; exit 3"], **PIPES)
        with pytest.raises(Endless):
            program.communicate(data)
    with at_most(2 * 10**6):
        program = subprocess.Popen(["sh", "-c", "cat; echo of no use >&2; exit 3"], **PIPES)
        assert program.communicate(data) == (data, b"of no use\n")
        assert program.returncode == 3
        # who reads nothing of it takes the rest of its input for read
        program = subprocess.Popen(["sh", "-c", "exec <&-; echo done"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert program.communicate(data) == (b"done\n", None)
        assert subprocess.run(["cat"], input="text", stdout=subprocess.PIPE, text=True, check=True).stdout == "text"
    assert subprocess.Popen(["true"]).wait() == 0
    assert subprocess.Popen.__name__ == "Popen"


@pytest.mark.parametrize(
    ("prints", "why"),
    [
        ("exec yes", "it has more than 64 MB, and no more is read"),
        ("exec yes >&2", "it has more than 64 MB, and no more is read"),
        ("echo '{'; exec yes '[],' | head -n 3000000", "it has 6000001 values, and at most 2000000 are looked at"),
    ],
)
def test_a_node_by_ssh_that_prints_without_end_fails_and_takes_no_memory(tmp_path, prints, why):
    """Lost: the controller. Its memory is bounded here, so that this one is not lost where the bound is."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n{prints}\n")
    ssh.chmod(0o755)
    (tmp_path / "book.json").write_text(json.dumps(BOOK))
    (tmp_path / "hosts").write_text(f"liar ansible_ssh_executable={ssh} ansible_python_interpreter=/usr/bin/python3\n")
    argv = [str(BIN / "ansible-playbook"), "-i", str(tmp_path / "hosts"), "book.json"]
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment(ANSIBLE_PIPELINING="true"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1000,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
    )  # fmt: skip
    assert f"said: what the node answers to board_info cannot be ({why})" in done.stdout, done.stdout[-3000:]


def test_the_bounds_leave_room_for_the_largest_node():
    """Lost: a proxy node of 6,000 boards with the 50 newest events of each."""
    assert short_calls.MANY >= 6000 * (50 * 6 + 30)
