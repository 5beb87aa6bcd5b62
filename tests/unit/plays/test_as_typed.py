# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of the blueprint, `ansible-playbook provision_instance.yml`, where people type it. If these fail, the
first thing that somebody tries is an error about paths.
"""

from __future__ import annotations

import os
import re
import shutil
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
    """A folder of collections into which the archive was installed, by what README has typed at the root of a clone."""
    clone, home = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("home")
    build, install = re.findall(r"`(ansible-galaxy collection \w+ [^`]*)`", (ROOT / "README.md").read_text())
    assert build == "ansible-galaxy collection build --force"
    done = run(*build.split(), str(ROOT), "--output-path", str(clone))
    assert done.returncode == 0, done.stdout
    # As tools/setup leaves a clone: in what its ansible.cfg calls the place of collections there is a link to itself.
    shutil.copy(ROOT / "ansible.cfg", clone)
    (clone / "build" / "ansible_collections" / "hetero").mkdir(parents=True)
    (clone / "build" / "ansible_collections" / "hetero" / "compute").symlink_to("../../..")
    (archive,) = clone.glob("*.tar.gz")
    words = install.replace("~", str(home)).replace("hetero-compute-*.tar.gz", str(archive)).split()
    done = run(*words, cwd=clone, env={"HOME": str(home)})
    assert "hetero.compute:0.1.0 was installed" in done.stdout.replace("\n", " "), done.stdout
    assert archive.exists()
    return home / ".ansible" / "collections"


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


@pytest.mark.parametrize("place", ["", "playbooks"])
def test_the_blueprints_command_in_a_clone_that_was_only_built(installed, tmp_path, place):
    """Lost: the first command of who has built and installed the archive only, to an error about paths."""
    for file in ("ansible.cfg", "provision_instance.yml"):
        shutil.copy(ROOT / file, tmp_path)
    shutil.copytree(ROOT / "playbooks", tmp_path / "playbooks")
    inventory = tmp_path / "inventory.yml"
    inventory.write_text("proxies: {hosts: {proxy1: {}}}\n")
    words = ["-i", str(inventory), "provision_instance.yml", "-e", "instance=jackie", "-e", "flavor=tp64.9x9"]
    done = run("ansible-playbook", *words, cwd=tmp_path / place, env={"HOME": str(installed.parents[1])})
    assert "tp64.9x9 is no flavor: is tp64.8x8 meant?" in done.stdout, done.stdout
    assert done.returncode == 2
