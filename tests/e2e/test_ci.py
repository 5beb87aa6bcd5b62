# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of the lab for jobs of a CI (extensions/ci), each asked for by a script that plays its runner. If these fail,
a job of GitLab, GitHub, a shell or pytest has no board, or leaves it behind; or a role's scenario of molecule does.

What a runner calls, with which variables, and what it goes by is in the documentation of the two: "The Custom
executor", "Running scripts before or after a job". Codes and killed jobs are tried in tests/unit/ci.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from labs import ANSIBLE, FLAVOR, ROOT

from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named

pytestmark = pytest.mark.long
CI = ROOT / "extensions" / "ci"
#: Seconds in which a program of a job ends: a boot takes half a minute, and four beside other load.
LIMIT = 900
#: The job of another team: its role, the play that uses it, and what is to be true of its boards then.
ROLE = {
    "meta/main.yml": "galaxy_info: {author: ann, description: d, license: MIT, min_ansible_version: '2.16'}\n",
    "tasks/main.yml": """---
- name: Say which driver is there
  ansible.builtin.copy:
    dest: /etc/driver
    content: "{{ ansible_facts.nodename }}"
    mode: "0644"
""",
    "molecule/default/converge.yml": """---
- name: Converge
  hosts: all
  roles: [driver]
""",
    "molecule/default/verify.yml": """---
- name: Verify
  hosts: all
  gather_facts: false
  tasks:
    - name: Read it
      ansible.builtin.slurp: {src: /etc/driver}
      register: driver
    - name: Look which boards these are
      ansible.builtin.assert:
        that: driver.content | b64decode == ansible_host
        success_msg: "{{ inventory_hostname }} is instance {{ ansible_host }}"
""",
}


class Machine:
    """A runner's machine, which reaches the lab's site by its inventory."""

    def __init__(self, lab, folder):
        self.lab, self.folder, self.state = lab, folder, folder / "state"
        path = f"{ANSIBLE}:{os.environ['PATH']}"
        self.env = dict(lab.env, PATH=path, HETERO_STATE=str(self.state))
        self.env.update(
            HETERO_INVENTORY=str(lab.folder / "inventory"), HETERO_FLAVOR=FLAVOR, HETERO_WAIT="10", HETERO_OWNER="ci"
        )

    def start(self, *words, **env):
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=self.folder,
            env=dict(self.env, **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **env):
        """(exit code, standard output, standard error)."""
        process = self.start(*words, **env)
        out, said = process.communicate(timeout=LIMIT)
        return process.returncode, out, said

    @property
    def claims(self):
        """{instance: owner}."""
        return {one["instance"]: one["owner"] for one in self.lab.module("board_info")["claims"]}

    def script(self, text):
        path = self.folder / "script"
        path.write_text(text)
        return path


@pytest.fixture
def machine(lab, tmp_path):
    found = Machine(lab, tmp_path)
    yield found
    assert list(found.state.glob("*")) == []


def test_a_job_of_gitlab_and_one_whose_prepare_is_killed(machine):
    """Lost: GitLab's jobs on boards; a failed test, told as a failed board; or a board for nobody."""
    job = machine.folder / "job.json"
    url = "https://gitlab-ci-token:secret@gitlab.example.com/ann/driver.git"
    job.write_text(json.dumps(dict(id=4711, git_info=dict(repo_url=url))))
    given = dict(JOB_RESPONSE_FILE=str(job), BUILD_FAILURE_EXIT_CODE="41", SYSTEM_FAILURE_EXIT_CODE="42")

    def stage(*words):
        return machine.run(CI / "gitlab", *words, **given)

    rc, out, said = stage("config")
    assert (rc, json.loads(out)["builds_dir"]) == (0, "/root/builds"), said
    rc, out, said = stage("prepare")
    assert rc == 0, said
    ((name, owner),) = machine.claims.items()
    assert (name.startswith("gitlab-4711-"), owner, f"HETERO_INSTANCE={name}\n" in out) == (True, "ci", True), out
    rc, out, said = stage("run", machine.script("mkdir -p /root/builds; uname -n; id -un"), "prepare_script")
    assert (rc, out) == (0, f"{name}\nroot\n"), said
    rc, _out, said = stage("run", machine.script("ls /root/builds && exit 3"), "build_script")
    assert rc == 41, said
    rc, _out, said = stage("cleanup")
    assert (rc, machine.claims) == (0, {}), said
    prepare = machine.start(CI / "gitlab", "prepare", **given)
    until = time.monotonic() + LIMIT
    while not machine.claims and time.monotonic() < until:
        time.sleep(0.2)
    prepare.kill()
    prepare.communicate(timeout=LIMIT)
    rc, _out, said = stage("cleanup")
    assert (rc, machine.claims) == (0, {}), said


def test_a_job_of_github(machine):
    """Lost: GitHub's jobs with boards, whatever their steps have set."""
    told = machine.folder / "github_env"
    job = dict(GITHUB_SERVER_URL="https://github.com", GITHUB_REPOSITORY="ann/driver", GITHUB_RUN_ID="123456789")
    job.update(GITHUB_JOB="boot", RUNNER_NAME="runner-1", GITHUB_ENV=str(told))
    rc, out, said = machine.run("bash", "-e", CI / "github_started.sh", **job)
    assert rc == 0, out + said
    job.update(line.split("=", 1) for line in told.read_text().splitlines())
    (name,) = machine.claims
    assert (job["HETERO_INSTANCE"], name.startswith("github-123456789-")) == (name, True)
    # the two steps of the guide's workflow
    machine.script("#!/bin/sh\necho tested on $(uname -n)\n").chmod(0o755)
    rc, _out, said = machine.run("bash", "-e", "-c", 'scp -F "$HETERO_SSH_CONFIG" -r . "$HETERO_INSTANCE:work"', **job)
    assert rc == 0, said
    rc, out, said = machine.run("bash", "-e", "-c", "$HETERO_SSH 'cd work && ./script'", **job)
    assert (rc, out) == (0, f"tested on {name}\n"), said
    rc, out, said = machine.run("bash", "-e", CI / "github_completed.sh", **dict(job, HETERO_OWNER="ann"))
    assert (rc, "was not given back" in out, machine.claims) == (0, False, {}), out + said


def test_a_job_of_a_shell(machine):
    """Lost: boards in the jobs of any other CI, with one command or in several steps."""
    words = 'test "$(ssh -F "$HETERO_SSH_CONFIG" "$HETERO_INSTANCE" uname -n)" = shell && exit 7'
    rc, _out, said = machine.run(CI / "board", "run", "--name", "shell", "--", "sh", "-c", words)
    assert (rc, machine.claims) == (7, {}), said
    steps = f'eval "$({CI}/board take)" || exit\n$HETERO_SSH uname -n\n'
    rc, out, said = machine.run("sh", "-c", steps, HETERO_NAME="shell")
    assert (rc, out, machine.claims) == (0, "shell\n", {"shell": "ci"}), said
    rc, _out, said = machine.run(CI / "board", "give-back", HETERO_NAME="shell")
    assert (rc, machine.claims) == (0, {}), said


def test_a_job_of_pytest(machine):
    """Lost: boards in tests, and in their report which board it was and what its console said."""
    (machine.folder / "pytest.ini").write_text("[pytest]\n")
    (machine.folder / "test_boot.py").write_text(
        'def test_boot(board):\n    assert board.run("uname -m") == "x86_64"\n\n\n'
        'def test_fails(board):\n    board.run("exit 3")\n'
    )
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "heteroci.pytest_plugin", "--junitxml=report.xml")
    rc, out, said = machine.run(sys.executable, *words, "--board-flavor", FLAVOR, PYTHONPATH=str(CI))
    assert (rc, "1 failed, 1 passed" in out, machine.claims) == (1, True, {}), out + said
    passed, failed = ElementTree.parse(machine.folder / "report.xml").iter("testcase")
    told = [{one.get("name"): one.get("value") for one in case.iter("property")} for case in (passed, failed)]
    assert [one["board"] for one in told] == [told[0]["board"]] * 2
    assert told[0]["board_phases"]
    assert told[1]["board_console"]
    assert "board_console" not in told[0]


def test_another_roles_scenario_of_molecule(machine):
    """Lost: boards as the platforms of a role's scenario, by the two files of three lines that the guide has."""
    role, page = machine.folder / "driver", guide("ci")
    names = ("molecule", "create", "destroy")
    files = {f"molecule/default/{name}.yml": named(page, f"molecule-{name}") for name in names}
    for name, text in {**files, **ROLE}.items():
        (role / name).parent.mkdir(parents=True, exist_ok=True)
        (role / name).write_text(text.replace("arm.small", FLAVOR))
    machine.env.update(HOME=str(machine.folder), ANSIBLE_ROLES_PATH=str(machine.folder))
    words = (Path(sys.executable).with_name("molecule"), "test", "--no-command-borders")
    rc, out, said = machine.run("sh", "-c", f"cd {role} && exec {' '.join(map(str, words))}")
    assert rc == 0, out + said
    assert out.count("is instance local-") == 2, out
    assert machine.claims == {}
    shutil.rmtree(role)
