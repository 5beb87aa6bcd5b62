# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people type behind -e that Ansible keeps for nobody. If these fail, a lease is lost without a word."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks
from ansible_collections.hetero.compute.tests.unit.plays.test_names import PLAYBOOKS, tasks_in, yaml

WRITE = "is no NAME=VALUE: write = without blanks beside it"


def said(tmp_path, playbook, *flags, **extra):
    """What a playbook that failed said, of proxies that are not there: asked, it would fail with other words."""
    rc, output = Playbooks(tmp_path, ["p1", "p2"], ["gpu-2"]).play(playbook, *flags, **extra)
    assert rc == 2, output
    assert len(re.findall(r"TASK \[.*\n(?!skipping)", output)) <= 2, output
    return " ".join(output.split())


@pytest.mark.parametrize(
    ("playbook", "given", "words"),
    [
        ("provision_instance", f"instance=hsp flavor={FLAVOR} hours = 2", f"left over in -e: hours = 2 {WRITE}"),
        ("provision_instance", f"instance=hsp flavor={FLAVOR} --hours=2", "--hours is no option: is hours meant?"),
        ("provision_instance", f"instance=hsp flavor={FLAVOR} Hours=2", "Hours is no option: is hours meant?"),
        ("image", "nodes=p1 image=a b src=/srv/x", f"left over in -e: b {WRITE}"),
        ("status", "json=true --check=true", "--check stands in -e, where only NAME=VALUE does: give it by itself"),
        ("maintenance", "node=board3 proxy=p1 reason=its fan state=on", f"left over in -e: fan {WRITE}"),
        ("terminate_instance", "instance=jackie force = true", f"left over in -e: force = true {WRITE}"),
    ],
)
def test_what_is_left_over_is_said(tmp_path, playbook, given, words):
    """Lost: a lease, a name's second half, whatever stood behind a blank."""
    assert words in said(tmp_path, playbook, "-e", given)


def test_what_is_left_over_of_a_key_or_password_is_not_shown(tmp_path):
    """Lost: a secret, in the job's log."""
    text = said(tmp_path, "status", "-e", "ansible_password=correct HORSE-BATTERY")
    assert f"left over in -e: a part that is not shown, for it may be secret, {WRITE}" in text
    assert "HORSE" not in text


@pytest.mark.parametrize("playbook", ["proxy", "gpu_host", "build_image", "lab_up", "lab_down", "slurm"])
def test_set_up_playbooks_take_nothing_that_is_left_over(tmp_path, playbook):
    """Lost: Nova's flags, or a variable of a role, for a blank."""
    text = said(tmp_path, playbook, "--check", "-e", "nova_compute = true")
    assert f"left over in -e: nova_compute = true {WRITE}" in text


def test_every_set_up_playbook_looks():
    """Lost: the one that a person slips in."""
    for playbook in ("awx", "build_image", "gpu_host", "kvm_host", "lab_down", "lab_up", "proxy", "slurm"):
        plays = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())
        first = (plays[0].get("pre_tasks") or plays[0]["tasks"])[0]
        assert first["ansible.builtin.assert"]["that"] == "_wrong | length == 0", playbook
        assert len([part for part in tasks_in(plays) if "_wrong" in str(part.get("fail_msg"))]) == 1


@pytest.mark.parametrize(
    ("playbook", "extra", "words"),
    [
        ("proxy", dict(nova_compute="maybe"), "nova_compute is maybe: give true or false"),
        ("proxy", dict(nova_comput="true"), "nova_comput is no option: is nova_compute meant?"),
    ],
)
def test_options_of_set_up_playbooks_are_looked_at(tmp_path, playbook, extra, words):
    """Lost: `nova_compute=maybe` as if it were false, and `nova_comput=true` as if nothing had been said."""
    assert words in said(tmp_path, playbook, "--check", **extra)


def test_options_of_playbook_awx_are_looked_at(tmp_path):
    """Lost: secrets that are not written again, as one letter is missing. Of the playbook only its first task is here,
    as the modules of the others are another collection's.
    """
    (play,) = yaml.safe_load((PLAYBOOKS / "awx.yml").read_text())
    play = dict(play, tasks=play["tasks"][:1], vars_files=[str(PLAYBOOKS / name) for name in play["vars_files"]])
    (tmp_path / "awx.yml").write_text(json.dumps([play]))
    given = (
        "hetero_awx_update_secret=true hetero_awx_update_secrets=maybe hetero_awx_known_hosts=x hetero_awx_image = x"
    )
    plays = Playbooks(tmp_path, [])
    rc, output = plays.end(plays.start_file(str(tmp_path / "awx.yml"), "-e", given))
    assert rc == 2, output
    text = " ".join(output.split())
    for words in (
        "hetero_awx_update_secret is no option: is hetero_awx_update_secrets meant? A variable of your own needs ",
        f"left over in -e: a part that is not shown, for it may be secret, {WRITE}",
        "; hetero_awx_update_secrets is maybe: give true or false; Name the repository of your hardware: -e hetero_awx",
        "; Give both of hetero_awx_ssh_private_key and hetero_awx_known_hosts, or neither",
    ):
        assert words in text, output
    rc, output = plays.end(plays.start_file(str(tmp_path / "awx.yml"), "-e", "hetero_awx_project_url=https://x/y.git"))
    assert rc == 0, output
