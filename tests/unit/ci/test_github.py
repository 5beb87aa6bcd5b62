# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extensions/ci/github_started.sh and github_completed.sh, called as a runner of GitHub Actions calls its hooks. If
these fail, its jobs have no board, or keep it.
"""

from __future__ import annotations

import signal

import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT
from ansible_collections.hetero.compute.tests.unit.ci.test_names_of_jobs import GITHUB


class Runner:
    """A self-hosted runner, by the contract of GitHub's documentation: bash -e SCRIPT, and files for variables."""

    def __init__(self, machine):
        self.machine, self.file = machine, machine.folder / "github_env"
        self.env = dict(GITHUB, GITHUB_ENV=str(self.file), GITHUB_RUN_ATTEMPT="1", HETERO_FLAVOR="tp64.8x8")

    def start(self, hook, **env):
        script = CI / f"github_{hook}.sh"
        return self.machine.start("-e", str(script), program="/bin/bash", **dict(self.env, **env))

    def hook(self, hook, **env):
        process = self.start(hook, **env)
        out, said = process.communicate(timeout=LIMIT)
        return process.returncode, out, said


def obeyed(output):
    """The commands that a runner obeys in what a hook says: `::NAME …` at the beginning of a line, `##[NAME]` anywhere,
    and none from `::stop-commands::TOKEN` to `::TOKEN::` (GitHub's documentation, "Workflow commands").
    """
    token, found = None, []
    for line in map(str.lstrip, output.splitlines()):
        if token:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.rpartition("::")[2]
            assert len(token) == 32
        elif line.startswith("::") or "##[" in line:
            found.append(line)
    assert token is None, output
    return found


def test_a_job_from_its_first_hook_to_its_last(machine):
    """Lost: all jobs of GitHub's runners; or a board after each of them."""
    runner = Runner(machine)
    rc, _out, said = runner.hook("started")
    assert rc == 0, said
    told = dict(line.split("=", 1) for line in runner.file.read_text().splitlines())
    name = told["HETERO_INSTANCE"]
    assert name.startswith("github-123456789-")
    assert (told["HETERO_ADDRESS"], told["HETERO_NODE"]) == ("10.0.1.1", "board0")
    assert told["HETERO_SSH"] == f"ssh -F {machine.state}/{name}/ssh_config {name}"
    # what a step has set names no other job's board; a second attempt has the board of the first
    of_others = dict(HETERO_NAME="github-9-00000000", CI_JOB_ID="4711", CI_SERVER_HOST="gitlab.example.com")
    rc, _out, said = runner.hook("completed", GITHUB_RUN_ATTEMPT="2", **of_others)
    assert rc == 0, said
    assert [(verb, options["instance"]) for verb, options in machine.calls] == [
        ("provision_instance", name),
        ("terminate_instance", name),
    ]
    assert list(machine.state.iterdir()) == []


def test_a_failed_boot_is_an_error_of_its_own(machine):
    """Lost: that the board failed and no step of the job, which is not begun."""
    machine.says("provision_instance", "boot", "board0: stalled\nat 100 %", "board", ["PXE-E53", "##[add-mask]e"])
    rc, out, said = Runner(machine).hook("started")
    title = "::error title=No board for this job::the board did not come up (fault of: board): "
    # what a board says is no command to the runner
    assert (rc, obeyed(out)) == (113, [f"{title}board0: stalled%0Aat 100 %25"]), said
    assert "\n  | PXE-E53\n  | ##[add-mask]e\n" in out


@pytest.mark.parametrize("hook", ["started", "completed"])
def test_what_a_playbook_says_is_no_command_to_the_runner(machine, hook):
    """Lost: secrets in a log, or an annotation that nobody wrote: a playbook's lines have what boards and nodes
    say, and the last one of a playbook that was ended may be cut off.
    """
    runner = Runner(machine)
    if hook == "completed":
        assert runner.hook("started")[0] == 0
    program = machine.folder / "bin" / "ansible-playbook"
    program.write_text("#!/bin/sh\nprintf 'a\\n##[add-mask]e\\n::error::x\\n::warning::cut off'\nexit 2\n")
    rc, out, said = runner.hook(hook)
    told = "::error title=No board for this job::Ansible, or a file, failed on this machine: provision_instance ended "
    if hook == "completed":
        (name,) = machine.state.iterdir()
        told = f"::warning title={name.name} was not given back::terminate_instance ended "
    assert (rc, said) == (115 if hook == "started" else 0, "")
    assert [line.startswith(told) for line in obeyed(out)] == [True], out
    assert "a\n##[add-mask]e\n::error::x\n::warning::cut off" in out


def test_what_stays_is_a_warning(machine):
    """Lost: that a board is still there, or the job's success."""
    runner = Runner(machine)
    assert runner.hook("started")[0] == 0
    machine.says("terminate_instance", "owner", "p1 cannot be asked")
    rc, out, said = runner.hook("completed")
    ((title, why),) = [line.split(" was not given back::") for line in obeyed(out)]
    assert (rc, title.startswith("::warning title=github-123456789-"), why) == (0, True, "p1 cannot be asked"), said


def test_a_job_that_is_cancelled_while_it_waits(machine):
    """Lost: a board that comes up for nobody, for the whole lease."""
    machine.hangs("provision_instance")
    process = Runner(machine).start("started")
    assert process.stdout.readline().startswith("::stop-commands::")
    assert process.stdout.readline() == "provision_instance runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT) == 128 + signal.SIGTERM
    assert machine.verbs == ["provision_instance", "terminate_instance"]


@pytest.mark.parametrize("where", ["started", "step"])
def test_what_a_step_has_set_keeps_no_board(machine, where):
    """Lost: the board until its lease ends, as a step names its own owner, site or folder for boards that it takes."""
    runner = Runner(machine)
    site = machine.folder / "site"
    site.touch()
    of_the_runner = dict(HETERO_OWNER="github", HETERO_INVENTORY=str(site))
    rc, _out, said = runner.hook("started", **of_the_runner)
    assert rc == 0, said
    told = dict(line.split("=", 1) for line in runner.file.read_text().splitlines())
    of_a_step = dict(HETERO_OWNER="ann", HETERO_INVENTORY="/nowhere", HETERO_STATE=str(machine.folder / "other"))
    rc, out, said = runner.hook("completed", **told, **(of_a_step if where == "step" else of_the_runner))
    assert (rc, obeyed(out)) == (0, []), said
    (_verb, asked), (_last, ended) = machine.calls
    assert (asked["owner"], ended["owner"], list(machine.state.iterdir())) == ("github", "github", [])


def test_a_hook_that_no_runner_calls(machine):
    """Lost: what is missing, to a traceback; or a board that is taken for a job that cannot be told of it."""
    runner = Runner(machine)
    for names, words in (
        ("GITHUB_ENV", "is not set: a runner of GitHub Actions sets it"),
        ("GITHUB_RUN_ID", "is not set: a runner of GitHub Actions sets it"),
        ("GITHUB_RUN_ID and GITHUB_ENV", "are not set: a runner of GitHub Actions sets them"),
    ):
        rc, out, said = runner.hook("started", **dict.fromkeys(names.split(" and "), ""))
        assert (rc, f"{names} {words} for its hooks" in out, said) == (115, True, ""), out
    assert machine.calls == []
