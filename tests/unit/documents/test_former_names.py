# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules by the names that they had. If these fail, plays that people wrote for an earlier release do not run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: Former name → module that it leads to.
FORMER = {
    "board_console": "board_console_info",
    "board_instance": "instance",
    "host_check": "host_check_info",
    "kvm_instance": "instance",
    "lxc_instance": "instance",
    "nova_pci_lint": "nova_pci_info",
    "pci_check": "pci_check_info",
    "proxy_check": "proxy_check_info",
}
#: What Ansible says at -vvv of a module that it sends.
SENT = re.compile(r"Using module file .*/plugins/modules/(\w+)\.py")


@pytest.mark.dear
def test_former_names_lead_to_their_modules(tmp_path):
    """One play calls each with an option that none has: which files Ansible takes for them, and that they answer."""
    tasks = [{f"hetero.compute.{name}": {"nobodys": 1}, "ignore_errors": True} for name in FORMER]
    book = tmp_path / "book.json"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    argv = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", "-vvv", str(book)]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
    env = dict(os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_LOCAL_TEMP=str(tmp_path / "local"))
    env.update(ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"), ANSIBLE_REMOTE_TEMP=str(tmp_path / "remote"), **shared())
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SENT.findall(done.stdout) == list(FORMER.values()), done.stdout
    refused = re.findall(r'"msg": "(?:Unsupported parameters|missing required arguments)', done.stdout)
    assert len(refused) == len(FORMER), done.stdout


def test_each_former_name_is_routed_to_a_module_that_is_there():
    """Lost: the same, on days on which no play calls them."""
    routed = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["plugin_routing"]["modules"]
    led = {name: way["redirect"] for name, way in routed.items() if "redirect" in way}
    assert led == {name: f"hetero.compute.{module}" for name, module in FORMER.items()}
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert set(FORMER.values()) <= modules - set(FORMER)


def test_groups_of_module_defaults_hold_modules_that_are_there():
    """Lost: a default that a play sets for all modules of a group, for one whose name changed."""
    groups = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert {name for names in groups.values() for name in names} <= modules
    for name in sorted(modules):
        text = (ROOT / "plugins" / "modules" / f"{name}.py").read_text()
        for group, fragment in (("proxy", "actiongroup"), ("host", "actiongroup_host")):
            assert (f"- hetero.compute.attributes.{fragment}\n" in text) == (name in groups[group]), name
