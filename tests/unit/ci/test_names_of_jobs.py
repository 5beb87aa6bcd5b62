# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of instances by CI jobs. If these fail, two jobs have one board."""

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.hetero.compute.extensions.ci.heteroci.command import parser, request_of
from ansible_collections.hetero.compute.extensions.ci.heteroci.names import name_of

GITHUB = dict(
    GITHUB_SERVER_URL="https://github.com",
    GITHUB_REPOSITORY="ann/driver",
    GITHUB_RUN_ID="123456789",
    GITHUB_JOB="boot",
    RUNNER_NAME="runner-1",
)
GITLAB = dict(CI_JOB_ID="4711", CI_SERVER_HOST="gitlab.example.com")
JENKINS = dict(
    JENKINS_URL="https://ci/", JOB_NAME="boot/main", BUILD_NUMBER="9", NODE_NAME="agent1", EXECUTOR_NUMBER="0"
)  # fmt: skip


JOBS = [(GITHUB, "github-123456789"), (GITLAB, "gitlab-4711"), (JENKINS, "jenkins-9")]


@pytest.mark.parametrize(("job", "shown"), JOBS)
def test_a_job_has_one_name_and_no_other_has_it(job, shown):
    """Lost: a board that another job has just been given, or the one that this job has already."""
    name = name_of(job)
    assert re.fullmatch(rf"{shown}-[0-9a-f]{{8}}", name)
    assert name_of(dict(job, GITHUB_RUN_ATTEMPT="2", PATH="/bin")) == name
    others = {name_of(dict(job, **{key: f"{value}0"})) for key, value in job.items()}
    assert len(others | {name, name_of(job, "second")}) == len(job) + 2


def test_any_job_has_a_sound_name():
    """Lost: a board, as the CI's own number of the job is too long for a name or has odd characters."""
    for number in ("x" * 200, "ÄÖ/../{{ x }}", "-", "A_B"):
        assert re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name_of(dict(CI_JOB_ID=number)))


def test_a_shell_has_its_own(monkeypatch):
    """Lost: `board give-back` in the shell that typed `board take`."""
    monkeypatch.setattr("os.getsid", lambda pid: 1)  # one session, also where a harness has begun pytest as its own
    assert name_of({}) == name_of({})
    assert name_of({}).startswith("shell-")


def test_a_part_lasts_longer_than_its_shell(monkeypatch):
    """Lost: the board of a scenario of molecule, which one process takes and another one gives back."""
    name = name_of(dict(USER="ann"), "/cache/driver instance")
    monkeypatch.setattr("os.getppid", lambda: 1)
    assert name_of(dict(USER="ann"), "/cache/driver instance") == name
    assert name.startswith("local-ann-")
    assert name_of(dict(USER="ann"), "/cache/other instance") != name


def test_parts_have_names_of_their_own_also_where_a_variable_names_the_job(monkeypatch):
    """Lost: the second platform of a scenario of molecule, which is the first one's board."""

    def name(*words):
        return request_of(parser().parse_args(["take", *words])).name

    monkeypatch.setenv("HETERO_NAME", "mine")
    assert name() == "mine"
    assert name("--part", "1", "--name", "other") == "other"
    names = {name("--part", "1"), name("--part", "2")}
    monkeypatch.setenv("HETERO_NAME", "another")
    assert len(names | {name("--part", "1"), "mine", "another"}) == 5
    monkeypatch.delenv("HETERO_NAME")
    assert name("--part", "1") == name_of(os.environ, "1")
