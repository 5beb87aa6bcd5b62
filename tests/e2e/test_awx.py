# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Job templates on the lab, as AWX runs them: survey answers, the credential's key and host keys, ansible-runner."""

from __future__ import annotations

import re

import pytest
from labs import ROOT

from ansible_collections.hetero.compute.tests.awx import jobs

LOG = ROOT / "build" / "logs" / "awx.log"


@pytest.fixture
def awx(lab, tmp_path):
    return jobs.on_lab(lab, tmp_path)


def test_a_users_day(lab, awx, tmp_path):
    """Lost: AWX's users, although every playbook works by hand."""
    output = []

    def run(name, user="ada", **answers):
        job = awx.run(name, user=user, **answers)
        output.append(f"# {name} {answers}\n{job.output}")
        LOG.parent.mkdir(parents=True, exist_ok=True)
        LOG.write_text("\n".join(output))
        return job

    key = (lab.folder / "ssh" / "id_ed25519.pub").read_text().strip()
    form = dict(
        instance="ada-1", flavor="tp64.8x8", key=key, hours=2, count=1, partial="false", boot_source="nfs", attempts=2
    )
    job = run("provide an instance", **form)
    assert job.rc == 0, job.output
    (given,) = job.artifacts["hetero_instances"]
    assert (given["instance"], given["ip"][:7]) == ("ada-1", "10.0.2.")
    assert re.search(r"^ada-1 +board\d+ +running +ssh answers", job.output, re.M), job.output
    (claim,) = lab.module("board_info")["claims"]
    assert (claim["owner"], claim["instance"]) == ("ada", "ada-1")
    job = run("extend an instance's lease", instance="ada-1", hours="5")
    assert "5 h left" in job.output, job.output
    stranger = run("terminate an instance", user="eve", instance="ada-1")
    assert "ada-1 belongs to ada, not to eve" in stranger.output
    # a credential whose host keys are another machine's is no way in
    right = awx.credentials["nodes"]
    awx.env["ANSIBLE_SSH_CONTROL_PATH_DIR"] = str(tmp_path / "second")
    awx.credentials["nodes"] = dict(right, known_hosts=right["known_hosts"].replace("AAAA", "AAAB"))
    refused = run("status")
    assert refused.rc != 0
    assert "Host key verification failed" in refused.output, refused.output
    awx.credentials["nodes"] = right
    job = run("terminate an instance", instance="ada-1", wipe="discard")
    assert (job.rc, job.changed > 0) == (0, True), job.output
    assert lab.module("board_info")["claims"] == []
