# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lab_up says: at its end how to go on, and of a lab that is up with other options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = Path(sys.executable).parent / "ansible-playbook"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")


def played(folder, *argv, **options):
    """What ansible-playbook printed, typed in this folder, and how it ended."""
    env = dict(os.environ, PWD=str(folder), ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"))
    given = json.dumps({"ansible_python_interpreter": sys.executable, **options})
    done = subprocess.run(
        [PROGRAM, *argv, "-e", given], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


NEXT = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.include_role": {"name": "hetero.compute.lab", "tasks_from": "next.yml"}}],
    }
]
ASK = "hetero.compute.provision_instance -e instance=jackie -e flavor="


@pytest.mark.parametrize(
    ("argv", "options", "says"),
    [
        (
            ["-i", "localhost,"],
            {},
            [
                "next     ansible-playbook -i .lab/inventory hetero.compute.proxy",
                f"then     ansible-playbook -i .lab/inventory {ASK}tp64.8x8",
                "to end   ansible-playbook hetero.compute.lab_down",
            ],
        ),
        (
            ["-i", ".lab/inventory"],
            {"lab_proxy": "none", "lab_gpu_hosts": [{"name": "gpu1"}]},
            [
                "next     ansible-playbook hetero.compute.gpu_host",
                f"then     ansible-playbook {ASK}cg1.xlarge",
                "to end   ansible-playbook hetero.compute.lab_down",
            ],
        ),
        (
            ["-i", "localhost,"],
            {"lab_folder": "/srv/two labs"},
            [
                "next     ansible-playbook -i '/srv/two labs/inventory' hetero.compute.proxy",
                f"then     ansible-playbook -i '/srv/two labs/inventory' {ASK}tp64.8x8",
                "to end   ansible-playbook hetero.compute.lab_down -e 'lab_folder=\"/srv/two labs\"'",
            ],
        ),
    ],
    ids=["from the archive", "in a clone, with GPUs", "elsewhere"],
)
def test_its_last_lines_are_the_next_commands(tmp_path, argv, options, says):
    """Lost: who has the collection's archive alone sees that the lab is up, and no page to hand on what to type."""
    (tmp_path / ".lab" / "inventory").mkdir(parents=True)
    (tmp_path / ".lab" / "inventory" / "lab.yml").write_text("all: {}\n")
    (tmp_path / "next.yml").write_text(json.dumps(NEXT))
    code, said = played(tmp_path, *argv, "next.yml", **options)
    assert code == 0, said
    assert [line[8:] for line in said.splitlines() if line.startswith("lab     ")] == says


@AS_ROOT
def test_a_lab_that_is_up_is_not_forgotten(tmp_path):
    """Lost: the memory and the ports of nodes and PDUs that run on, and that lab_down does not find any more."""
    before = json.dumps({"nodes": {"proxy1": {}, "gpu1": {}}, "pdus": {"pdu-a": {}, "pdu-b": {}}})
    (tmp_path / "lab.json").write_text(before)
    given = {"lab_folder": str(tmp_path), "lab_proxy": "none", "lab_gpu_hosts": [{"name": "gpu1"}]}
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", **given)
    assert code == 2, said
    assert "A lab with proxy1, pdu-a, pdu-b is up in" in said.replace("\n", " "), said
    assert (tmp_path / "lab.json").read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["lab.json"]
