# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of a CI, whose ansible-playbook is a program that says what a site would say (playbooks.py beside this).

What the playbooks themselves do for a job is in tests/unit/plays/test_board_of_a_job.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

CI = ROOT / "extensions" / "ci"
PLAYED = Path(__file__).with_name("played_site.py")
#: A folder for PYTHONPATH, by which a program gets a signal at one of its lines.
EACH_LINE = Path(__file__).with_name("each_line")
#: Seconds in which a program of a job ends.
LIMIT = 120
GIVEN = dict(ending="given", text="", blame=None, console=[])


class Machine:
    """A runner's machine: `says` makes the site say something, `calls` are the playbooks that ran."""

    def __init__(self, folder):
        self.folder, self.state = folder, folder / "state"
        program = folder / "bin" / "ansible-playbook"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{PLAYED.read_text()}")
        program.chmod(0o755)
        own = {name: os.environ[name] for name in ("HOME", "LANG", "USER") if name in os.environ}
        path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        self.env = dict(own, PATH=path, HETERO_STATE=str(self.state), PLAYED_SITE=str(folder), TMPDIR=str(self.tmp))

    def says(self, playbook, ending, text, blame=None, console=()):
        outcome = dict(ending=ending, text=text, blame=blame, console=list(console), instances=[])
        (self.folder / f"says-{playbook}.json").write_text(json.dumps(outcome))

    def hangs(self, playbook):
        """Have a playbook say that it runs, and not end by itself."""
        (self.folder / f"hangs-{playbook}").touch()

    def goes_on(self, playbook):
        """Have a playbook end by itself, and give what is asked for."""
        for name in (f"hangs-{playbook}", f"says-{playbook}.json"):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def calls(self):
        """[(playbook, its options)], in their order."""
        log = self.folder / "calls"
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def verbs(self):
        return [playbook for playbook, _options in self.calls]

    def start(self, *words, program="board", **env):
        return subprocess.Popen(
            [str(CI / program), *words],
            cwd=self.folder,
            env=dict(self.env, **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **more):
        """(exit code, standard output, standard error)."""
        process = self.start(*words, **more)
        out, said = process.communicate(timeout=LIMIT)
        return process.returncode, out, said


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def children_of(pid):
    """{process: its words} of those that a process has started and that still run; one may end as it is looked at."""
    found = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    return found


def keeper_of(process):
    """A function that waits for the end of the keeper of a `board run`, whatever becomes of that."""
    (pid,) = [pid for pid, words in children_of(process.pid).items() if b"keeper" in words]
    handle = os.pidfd_open(pid)

    def wait():
        assert select.select([handle], [], [], LIMIT)[0]
        os.close(handle)

    return wait
