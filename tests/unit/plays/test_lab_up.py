# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab, asked for with other options than the one that is up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")


def test_a_lab_that_is_up_is_not_forgotten(tmp_path):
    """Lost: the memory and the ports of nodes and PDUs that run on, and that lab_down does not find any more."""
    before = json.dumps({"nodes": {"proxy1": {}, "gpu1": {}}, "pdus": {"pdu-a": {}, "pdu-b": {}}})
    (tmp_path / "lab.json").write_text(before)
    given = {
        "ansible_python_interpreter": sys.executable,
        "lab_folder": str(tmp_path),
        "lab_proxy": "none",
        "lab_gpu_hosts": [{"name": "gpu1"}],
    }
    program = Path(sys.executable).parent / "ansible-playbook"
    argv = [program, "-i", "localhost,", "hetero.compute.lab_up", "-e", json.dumps(given)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "A lab with proxy1, pdu-a, pdu-b is up in" in said.replace("\n", " "), said
    assert (tmp_path / "lab.json").read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["lab.json"]
