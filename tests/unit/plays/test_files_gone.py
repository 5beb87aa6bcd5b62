# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a request that go away while it waits for a node. Lost if these fail: root on the board, to whose key is the
site's default; or a first boot without what was to lock it down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import COLLECTIONS
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY

PLAY = """\
- hosts: localhost
  gather_facts: false
  vars_files: [{folder}/ansible_collections/hetero/compute/playbooks/vars/request.yml]
  vars:
    # what rebuild_instance gives to plays/act.yml
    _state: rebuilt
    instance: jackie
    _deed: "{{{{ 'deed' | hetero.compute.requested }}}}"
  tasks:
    - name: All is well
      ansible.builtin.assert:
        that: [_wrong == '', _public_key == other, ('cloud_data' | hetero.compute.requested) is search('lock-down')]
      vars:
        _checks: [key, user_data]
    - name: Its node is found
      ansible.builtin.set_fact:
        _plan: {{parts: [{{item: localhost, kind: board, numbers: [], claims: [{{created: 1.5, owner: jo}}]}}]}}
    - name: It goes away
      ansible.builtin.file: {{path: "{{{{ gone }}}}", state: absent}}
    - name: It is used
      ansible.builtin.debug: {{msg: "used: {{{{ {use} }}}}"}}
"""


@pytest.mark.parametrize(
    ("gone", "use"),
    [
        ("files/keys/jackie.pub", "_public_key"),
        ("files/keys/jackie.pub", "_deed.ssh_public_key | default('none', true)"),
        ("first.yml", "'cloud_data' | hetero.compute.requested or 'none'"),
        ("first.yml", "_deed.fresh | default('none')"),
    ],
)
def test_what_is_gone_is_not_taken_for_what_nobody_named(tmp_path, gone, use):
    keys = tmp_path / "files" / "keys"
    keys.mkdir(parents=True)
    (keys / "jackie.pub").write_text(OTHER_KEY)
    (keys / "bob.pub").write_text(OTHER_KEY)
    (tmp_path / "first.yml").write_text("#cloud-config\nruncmd: [lock-down]\n")
    (tmp_path / "hosts").write_text(f"localhost ansible_connection=local hetero_ssh_public_key='{KEY}'\n")
    (tmp_path / "play.yml").write_text(PLAY.format(folder=COLLECTIONS, use=use))
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    env.update(ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), ANSIBLE_NOCOLOR="true")
    words = ["-i", "hosts", "play.yml", "-e", "key=jackie user_data=first.yml", "-e", f"gone={tmp_path / gone}"]
    words += ["-e", f"other='{OTHER_KEY}'", "-e", f"ansible_python_interpreter={sys.executable}"]
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), *words]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=2000)
    said = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode, '"msg": "used:' in said) == (2, False), said
    assert "has no key jackie" in said if "keys" in gone else "first.yml cannot be read" in said, said
