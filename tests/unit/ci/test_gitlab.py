# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extensions/ci/gitlab, called as GitLab runner calls a custom executor. If these fail, jobs of GitLab have no board,
have another job's, or keep it.
"""

from __future__ import annotations

import json
import signal

import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import LIMIT

#: The board's own shell, in place of ssh: the words after the instance are run here.
SSH = """#!/bin/sh
[ -e {folder}/away ] && exit 255
echo "ssh $2 $3" >> {folder}/logins
shift 3
exec sh -c "$*"
"""


class Runner:
    """GitLab runner with one job, by the contract of its documentation."""

    def __init__(self, machine, number=4711):
        self.machine = machine
        response = machine.folder / f"response-{number}.json"
        url = "https://gitlab-ci-token:secret@gitlab.example.com/ann/driver.git"
        response.write_text(json.dumps(dict(id=number, token="secret", git_info=dict(repo_url=url))))
        self.env = dict(
            JOB_RESPONSE_FILE=str(response),
            BUILD_FAILURE_EXIT_CODE="41",
            SYSTEM_FAILURE_EXIT_CODE="42",
            HETERO_FLAVOR="tp64.8x8",
            HETERO_OWNER="gitlab",
            CUSTOM_ENV_CI_JOB_ID=str(number),
        )
        ssh = machine.folder / "bin" / "ssh"
        ssh.write_text(SSH.format(folder=machine.folder))
        ssh.chmod(0o755)

    def start(self, *words, **env):
        return self.machine.start(*words, program="gitlab", **dict(self.env, **env))

    def stage(self, *words, **env):
        return self.machine.run(*words, program="gitlab", **dict(self.env, **env))

    def script(self, text):
        path = self.machine.folder / "script"
        path.write_text(text)
        return str(path)


@pytest.mark.parametrize("name", ["state", "my keys"])
def test_a_folder_for_keys_that_is_refused_is_the_runners_failure(machine, name):
    """Lost: a job, failed as its own fault and tried on no other runner, for a setting of the service of this one."""
    state = machine.folder / name
    state.mkdir()
    state.chmod(0o1777)
    rc, _out, said = Runner(machine).stage("prepare", HETERO_STATE=str(state))
    assert (rc, machine.calls) == (42, []), said
    assert "Ansible, or a file, failed on this machine: the folder for keys" in said
    assert ": set HETERO_STATE (or --state) to one " in said


def test_a_job_from_config_to_cleanup(machine):
    """Lost: all jobs of GitLab; or a failed test, told as a failed runner that GitLab tries again."""
    runner = Runner(machine)
    rc, out, _said = runner.stage("config")
    assert (rc, json.loads(out)["builds_dir"]) == (0, "/root/builds")
    rc, out, said = runner.stage("prepare", CUSTOM_ENV_HETERO_IMAGE="debian-13", CUSTOM_ENV_HETERO_HOURS="90000")
    assert (rc, "HETERO_ADDRESS=10.0.1.1\n" in out) == (0, True), said
    (_playbook, asked) = machine.calls[0]
    name = asked["instance"]
    assert name.startswith("gitlab-4711-")
    assert [asked[key] for key in ("flavor", "image", "owner", "hours")] == ["tp64.8x8", "debian-13", "gitlab", "2"]
    rc, out, said = runner.stage("run", runner.script("echo built; true"), "build_script")
    assert (rc, out) == (0, "built\n"), said
    assert (machine.folder / "logins").read_text() == f"ssh {machine.state}/{name}/ssh_config {name}\n"
    code = machine.folder / "code"
    rc, _out, said = runner.stage("run", runner.script("exit 3"), "build_script", BUILD_EXIT_CODE_FILE=str(code))
    assert (rc, code.read_text()) == (41, "3"), said
    rc, _out, said = runner.stage("run", runner.script("exit 255"), "after_script")
    assert rc == 41, said
    (machine.folder / "away").touch()
    rc, _out, said = runner.stage("run", runner.script("true"), "after_script")
    console = f"console -e instance={name} -e owner=gitlab\n"
    assert (rc, f"through to {name} any more: its console says why: ansible-playbook" in said) == (42, True)
    assert said.endswith(console)
    for _time in range(2):
        rc, _out, said = runner.stage("cleanup")
        assert (rc, (machine.state / name).exists()) == (0, False), said
    assert {options["owner"] for _verb, options in machine.calls} == {"gitlab"}
    assert machine.verbs == ["provision_instance", "terminate_instance"]
    assert "secret" not in json.dumps(machine.calls)


@pytest.mark.parametrize(
    ("ending", "code"), [("request", 41), ("none", 42), ("boot", 42), ("owner", 42), ("other", 42)]
)
def test_what_failed_in_prepare(machine, ending, code):
    """Lost: whose failure it is; GitLab tries those of the runner again, and shows those of a job as the job's."""
    machine.says("provision_instance", ending, "said", "board", ["PXE-E53: No boot filename received"])
    rc, _out, said = Runner(machine).stage("prepare")
    assert (rc, "  | PXE-E53: No boot filename received\n" in said) == (code, True), said


def test_a_job_cannot_have_another_jobs_board(machine):
    """Lost: somebody's board, to a job that calls itself by another's number or asks for what Ansible would run."""
    runner = Runner(machine)
    runner.stage("prepare")
    rc, _out, said = runner.stage("cleanup", CUSTOM_ENV_CI_JOB_ID="4712", CUSTOM_ENV_HETERO_OWNER="ann")
    assert rc == 0, said
    assert len({(options["instance"], options["owner"]) for _verb, options in machine.calls}) == 1
    assert {options["instance"][:12] for _verb, options in machine.calls} == {"gitlab-4711-"}
    rc, _out, said = runner.stage("prepare", CUSTOM_ENV_HETERO_IMAGE="{{ lookup('pipe', 'id') }}")
    assert (rc, "give letters, digits" in said, len(machine.calls)) == (41, True, 2), said
    rc, _out, said = runner.stage("prepare", JOB_RESPONSE_FILE="/no/file")
    assert (rc, "JOB_RESPONSE_FILE has no job" in said, len(machine.calls)) == (42, True, 2), said


def test_a_job_that_is_cancelled_while_it_waits(machine):
    """Lost: a board that comes up for nobody, for the whole lease."""
    machine.hangs("provision_instance")
    process = Runner(machine).start("prepare")
    assert process.stderr.readline() == "provision_instance runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT) == 128 + signal.SIGTERM
    assert machine.verbs == ["provision_instance", "terminate_instance"]


def test_a_stage_that_is_none(machine):
    """Lost: what is wrong in config.toml."""
    rc, _out, said = Runner(machine).stage()
    assert (rc, "gitlab: no stage: give config, prepare, run, cleanup" in said) == (42, True)
    rc, _out, said = Runner(machine).stage("run")
    assert (rc, "run has no script: GitLab runner gives it one" in said) == (42, True), said
