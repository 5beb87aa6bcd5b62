# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node whose package sources lack what the role installs; apt itself runs, in check mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.tests.builds import shared

#: A name that no package has.
NONE = "no-such-package-of-any-source"
PYTHON = "/usr/bin/python3"


def has_apt():
    return subprocess.run([PYTHON, "-c", "import apt"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_apt(), reason="python3-apt is not installed: tools/setup test")
def test_a_missing_package_says_what_to_do(tmp_path):
    """Lost: the way out of a set-up that ends with `No package matching`."""
    role = {"name": "hetero.compute.tftp_proxy", "tasks_from": "install"}
    machine = {"missing_packages": [NONE], "check_mode": False}
    hosts = dict(hosts="localhost", connection="local", gather_facts=False)
    own = {"_tftp_proxy_machine": machine, "ansible_python_interpreter": PYTHON}
    play = dict(hosts, vars=own, tasks=[{"ansible.builtin.include_role": role}])
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    env.update(ANSIBLE_COLLECTIONS_PATH=os.environ["PYTHONPATH"], ANSIBLE_NOCOLOR="1", **shared())
    env.update(ANSIBLE_LOCAL_TEMP=str(tmp_path / "ansible"), ANSIBLE_LOCALHOST_WARNING="false")
    argv = [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", "--check", "play.yml"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1200, check=False)
    last = [line for line in done.stdout.splitlines() if "fatal: " in line or "msg" in line][-1]
    assert done.returncode == 2, done.stdout
    assert f"No package matching '{NONE}' is available: no package source of this machine has it: name one" in last
    assert "/etc/apt/sources.list.d, and run this again" in last
