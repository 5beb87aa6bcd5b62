# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role nova_compute with PCI devices, as a play has it: on a machine that is a folder. If it fails, a KVM host's cards
never get into Nova, or each run of the role changes something.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.tests.builds import shared

VARIABLES = {
    "nova_compute_boards": False,
    "nova_compute_pci_kinds": ["api", "compute", "scheduler"],
    "nova_compute_pci_aliases": [{"name": "a1", "vendor_id": "10de", "product_id": "11bf"}],
    "nova_compute_pci_device_specs": [{"vendor_id": "10de", "product_id": "11bf"}],
    "nova_compute_services": {
        "compute": {"command": "nova-compute --config-file=/etc/nova/nova.conf"},
        "scheduler": {"command": "nova-scheduler --config-file=/etc/nova/nova.conf"},
    },
}
LINT = {
    "name": "Look at all of it",
    "hetero.compute.nova_pci_info": {
        "services": "{{ [{'kind': 'api'}, {'kind': 'compute'}, {'kind': 'scheduler'}] }}",
        "devices": [{"address": "0000:86:00.0", "vendor_id": "10de", "product_id": "11bf"}],
        "flavors": {"gpu.k2": {"extra_specs": {"pci_passthrough:alias": "a1:1"}}},
        "root": "{{ nova_compute_root }}",
    },
    "register": "found",
}


@pytest.fixture
def play(tmp_path):
    """A function that runs the role and the linter; returns its output."""
    root = tmp_path / "root"
    (root / "etc/nova").mkdir(parents=True)
    (root / "etc/nova/api-paste.ini").write_text("")
    (root / "etc/nova/nova.conf").write_text(
        '[pci]\nalias = {"name": "old", "vendor_id": "8086", "product_id": "1520"}\n'
        "[filter_scheduler]\nenabled_filters = RamFilter,ComputeFilter\n"
    )
    show = {"ansible.builtin.debug": {"msg": "{{ 'found ' ~ found.flavors | to_json }}"}}
    hosts = dict(hosts="localhost", connection="local", gather_facts=False, roles=["hetero.compute.nova_compute"])
    # the system's Python, which has nothing of Nova's
    own = dict(VARIABLES, nova_compute_root=str(root), ansible_python_interpreter="/usr/bin/python3")
    tasks = dict(vars=own, tasks=[LINT, show])
    (tmp_path / "play.yml").write_text(yaml.safe_dump([dict(hosts, **tasks)]))
    foreign = ("ANSIBLE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env.update(
        ANSIBLE_COLLECTIONS_PATH=os.environ["PYTHONPATH"], ANSIBLE_NOCOLOR="1", ANSIBLE_LOCALHOST_WARNING="false"
    )
    env.update(ANSIBLE_LOCAL_TEMP=str(tmp_path / "ansible"), **shared())

    def run(*options):
        argv = [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", *options, "play.yml"]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.root = root
    return run


def test_the_role_on_a_node_that_is_everything(play):
    """Written where each service reads it, the old filter named, a second run without a change, a flavor that fits."""
    conf = (play.root / "etc/nova/nova.conf").read_text()
    output = play("--check", "--diff")
    assert "changed=3" in output
    assert "PciPassthroughFilter" in output
    assert (play.root / "etc/nova/nova.conf").read_text() == conf
    output = play()
    assert "nova    nova-scheduler  RamFilter is left out of the filters: gone since Nova 20" in output
    assert "nova    nova-scheduler  -enabled_filters = RamFilter,ComputeFilter" in output
    verdict = json.loads(json.loads(re.search('"msg": (".*found.*")', output)[1])[len("found ") :])["gpu.k2"]
    assert [one["fits"] for one in verdict["hosts"].values()] == [True]
    assert "changed=0" in play()
    text = (play.root / "etc/nova/nova.conf").read_text()
    # beside the alias that was there; device_spec was nowhere, and is in a file of its own
    assert text.count('"name": "a1"') == 1
    assert "device_spec" in (play.root / "etc/nova/nova.conf.d/hetero-pci-compute.conf").read_text()
    assert "enabled_filters = ComputeFilter,PciPassthroughFilter\n" in text
    assert "changed=3" in play("-e", "nova_compute_state=absent")
    assert (play.root / "etc/nova/nova.conf").read_text() == conf
