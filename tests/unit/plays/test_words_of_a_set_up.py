# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the set-up of a proxy node says at its end. If these fail, who has one board reads a line for others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

PROGRAM = Path(sys.executable).parent / "ansible-playbook"


@pytest.mark.parametrize(
    ("boards", "pdus", "said"),
    [
        (1, 1, "1 board from boards, 1 PDU"),
        (0, 0, "0 boards from boards, 0 PDUs"),
        (10, 2, "10 boards from boards, 2 PDUs"),
    ],
)
def test_one_board_is_not_several(tmp_path, boards, pdus, said):
    """Lost: trust in the count, to a line that says `1 boards`."""
    tasks = yaml.safe_load((ROOT / "roles" / "tftp_proxy" / "tasks" / "main.yml").read_text())
    (task,) = [task for task in tasks if task["name"] == "Say what is there"]
    machine = {"boards": list(range(boards)), "check_mode": False}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {
            "_tftp_proxy_machine": machine,
            "tftp_proxy_pdus": dict.fromkeys(map(str, range(pdus))),
            "tftp_proxy_boards_file": "files/boards",
            "tftp_proxy_boot_http": False,
            "tftp_proxy_dhcp": True,
        },
        "tasks": [task],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    env = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"), ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"))
    argv = [PROGRAM, "-i", "localhost,", "-c", "local", "play.yml"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert f"TFTP, NFS, DHCP, {said}\n" in done.stdout, done.stdout + done.stderr
