# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real cgroups, a process that tests put inside them, and programs that somebody else attached.

What is made here goes with its test.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf, mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse

INSIDE = Path(__file__).with_name("inside.py")


@contextmanager
def new_cgroup(version, below=None):
    """The directory of a new cgroup; it and those below it are removed, empty by then."""
    parent = below or mounts.mounts()[version][0].point
    path = os.path.join(parent, f"hetero-test-{uuid.uuid4().hex[:12]}")
    os.mkdir(path)
    try:
        yield path
    finally:
        for folder, _names, _files in os.walk(path, topdown=False):
            os.rmdir(folder)


class Inside:
    """A process that opens devices where the test puts it."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(INSIDE), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid

    def say(self, *words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process inside ended on {words}"
        return json.loads(answer)

    def enter(self, path):
        return self.say("enter", path)

    def node(self, kind, major, minor):
        path = self.folder / f"{kind}{major}-{minor}"
        if not path.exists():
            mode = stat.S_IFBLK if kind == "b" else stat.S_IFCHR
            os.mknod(path, mode | 0o600, os.makedev(major, minor))
        return path.name

    def ask(self, questions):
        """[(kind, major, minor, bits)] → [bool], by the kernel."""
        for kind, major, minor, _bits in questions:
            self.node(kind, major, minor)
        return self.say("ask", questions)

    def may(self, text):
        """Whether the kernel lets it do all that a rule says."""
        rule = parse(text)
        bits = [part for part in (rule.mask & 6, rule.mask & 1) if part]
        return all(self.ask([(rule.kind, rule.major, rule.minor, part) for part in bits]))

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Foreign:
    """A program that somebody else attached to a cgroup."""

    def __init__(self, path, instructions, name="foreign", flags=bpf.ALLOW_MULTI):
        self.path, self.name = path, name
        self.id = self._put(instructions, flags, 0)

    def _put(self, instructions, flags, replace):
        cgroup, program = os.open(self.path, os.O_RDONLY), bpf.load(instructions, self.name)
        try:
            bpf.attach(cgroup, program, flags, replace)
            return bpf.info(program)[0]
        finally:
            os.close(program)
            os.close(cgroup)

    def replace(self, instructions):
        """As LXC's monitor does for each rule: another program in the place of its own."""
        with bpf.closing(bpf.open_program(self.id)) as old:
            self.id = self._put(instructions, bpf.ALLOW_MULTI, old)
