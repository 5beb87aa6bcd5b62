# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-core itself makes of the collection. If these fail, a user of this release reads warnings, or no page.

Run by tests/versions/matrix.py with each ansible-core and each of its Pythons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
KINDS = {
    "module": "plugins/modules/*.py",
    "inventory": "plugins/inventory/*.py",
    "filter": "plugins/filter/*.yml",
    "lookup": "plugins/lookup/*.py",
    "test": "plugins/test/*.yml",
    "role": "roles/*/meta/argument_specs.yml",
}


def said(tool, *words):
    """(standard output, both outputs) of one of Ansible's commands that ends with 0."""
    env = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=str(PROJECT / "build"), ANSIBLE_LOCALHOST_WARNING="false")
    argv = [str(Path(sys.executable).parent / tool), *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stdout + done.stderr


def warnings(both):
    """Lines of an output that warn; not those about a collection within ansible-core, which 2.20 began to print."""
    lines = [line for line in both.splitlines() if "[WARNING]" in line or "[DEPRECATION" in line]
    return [line for line in lines if "/ansible/_internal/ansible_collections/" not in line]


@pytest.mark.parametrize("kind", KINDS)
def test_controller_has_a_page_of_every_plugin(kind):
    """Once for each ansible-core: how a page looks is its own; what its Python has a part in the next test tries."""
    listed, _both = said("ansible-doc", "--type", kind, "--list", "--json", "hetero.compute")
    names = sorted(json.loads(listed))
    assert len(names) >= len(list(PROJECT.glob(KINDS[kind]))), names
    _page, both = said("ansible-doc", "--type", kind, *names)
    assert warnings(both) == [], both


def test_controller_reads_every_plugin():
    """All kinds by one process, which ends with an error where one cannot be loaded or its documentation not read."""
    dumped, both = said("ansible-doc", "--metadata-dump", "hetero.compute")
    assert warnings(both) == [], both
    found = json.loads(dumped)["all"]
    for kind, pattern in KINDS.items():
        names = [name for name in found[kind] if name.startswith("hetero.compute.")]
        assert len(names) >= len(list(PROJECT.glob(pattern))), names


def test_controller_reads_every_playbook(tmp_path):
    names = [f"hetero.compute.{path.stem}" for path in sorted(PROJECT.glob("playbooks/*.yml"))]
    # it is of modules of collection awx.awx, which is not here
    names.remove("hetero.compute.awx")
    assert len(names) > 10
    hosts = {group: {"hosts": {f"{group}1": {}}} for group in ("proxies", "hypervisor_lxc", "hypervisor_kvm")}
    (tmp_path / "inventory.yml").write_text(json.dumps({"all": {"children": hosts}}))
    output, both = said("ansible-playbook", "-i", str(tmp_path / "inventory.yml"), "--syntax-check", *names)
    assert output.count("playbook: ") == len(names), both
    assert warnings(both) == [], both


def test_controller_is_what_was_asked_for():
    """The matrix names a version; another one, found first in some path, would be tested in its place."""
    output, _both = said("ansible", "--version")
    assert f"python version = {sys.version_info.major}.{sys.version_info.minor}." in output
    assert "/hetero/environment/" in output
