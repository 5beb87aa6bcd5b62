# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards as the instances of another role's scenario, by molecule itself. If these fail, a role cannot be tried on
boards, or leaves them behind.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, named

#: The board's own shell, in place of ssh, of which Ansible's words end with the host and a command.
SSH = """#!/bin/sh
echo "$@" >> {folder}/logins
for word; do last=$word; done
exec sh -c "$last"
"""
META = "galaxy_info: {author: ann, description: d, license: MIT, min_ansible_version: '2.16'}\n"
#: The scenario of the guide, but for what runs on the board: what ssh is told there.
CONVERGE = """---
- name: Converge
  hosts: all
  gather_facts: false
  tasks:
    - name: Run the role's work
      ansible.builtin.raw: uname -n
      changed_when: false
"""


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.long
def test_a_role_has_boards_for_its_platforms(machine):
    """Lost: a role's scenario on boards, as the guide has it."""
    role, page = machine.folder / "driver", guide("ci")
    for name in ("molecule.yml", "create.yml", "destroy.yml"):
        put(role, f"molecule/default/{name}", named(page, f"molecule-{name.partition('.')[0]}"))
    put(role, "molecule/default/converge.yml", CONVERGE)
    put(role, "meta/main.yml", META)
    put(role, "tasks/main.yml", "---\n")
    put(machine.folder, "bin/ssh", SSH.format(folder=machine.folder))
    (machine.folder / "bin" / "ssh").chmod(0o755)
    env = dict(
        machine.env,
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"),
        HETERO_ANSIBLE_PLAYBOOK=str(machine.folder / "bin" / "ansible-playbook"),
        PATH=f"{Path(sys.executable).parent}:{machine.env['PATH']}",
        HOME=str(machine.folder),
    )
    machine.env = env
    molecule = str(Path(sys.executable).with_name("molecule"))
    for verb in ("create", "converge"):
        rc, out, said = machine.run("-c", f"cd {role} && exec {molecule} {verb}", program="/bin/sh")
        assert rc == 0, out + said
    asked = [options for _verb, options in machine.calls]
    assert [(one["flavor"], one.get("image")) for one in asked] == [("tp64.8x8", "debian-12"), ("arm.small", None)]
    names = [one["instance"] for one in asked]
    logins = (machine.folder / "logins").read_text()
    assert all(re.search(rf"{machine.state}/{name}/ssh_config", logins) for name in names), logins
    for _time in range(2):
        rc, out, said = machine.run("-c", f"cd {role} && exec {molecule} destroy", program="/bin/sh")
        assert rc == 0, out + said
    ended = [options["instance"] for verb, options in machine.calls if verb == "terminate_instance"]
    assert (ended[:2], os.listdir(machine.state)) == (names, [])
