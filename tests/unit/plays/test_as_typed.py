# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of the blueprint, `ansible-playbook provision_instance.yml`, where people type it. If these fail, the
first thing that somebody tries is an error about paths.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

BIN = Path(sys.executable).parent


def run(command, *words, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    argv = [str(BIN / command), *words]
    env.update(more.pop("env", {}))
    return subprocess.run(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1200, **more
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder of collections into which the archive was installed, as everyone does it."""
    folder = tmp_path_factory.mktemp("installed")
    done = run("ansible-galaxy", "collection", "build", str(ROOT), "--output-path", str(folder))
    assert done.returncode == 0, done.stdout
    (archive,) = folder.glob("*.tar.gz")
    done = run("ansible-galaxy", "collection", "install", "--offline", "-p", str(folder), str(archive), cwd=folder)
    assert "hetero.compute:0.1.0 was installed" in done.stdout.replace("\n", " "), done.stdout
    return folder


@pytest.mark.parametrize("place", ["", "playbooks", "installed"])
def test_the_blueprints_command(installed, tmp_path, place):
    """At the root of a clone, in its playbooks, and in an installed collection."""
    inventory = tmp_path / "inventory.yml"
    inventory.write_text("proxies: {hosts: {proxy1: {}}}\n")
    folder, env = ROOT / place, {}
    if place == "installed":
        folder = installed / "ansible_collections" / "hetero" / "compute" / "playbooks"
        env = {"ANSIBLE_COLLECTIONS_PATH": str(installed)}
    words = ["-i", str(inventory), "provision_instance.yml", "-e", "instance=jackie", "-e", "flavor=tp64.9x9"]
    done = run("ansible-playbook", *words, cwd=folder, env=env)
    assert "tp64.9x9 is no flavor: is tp64.8x8 meant?" in done.stdout, done.stdout
    assert done.returncode == 2
