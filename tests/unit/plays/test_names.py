# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the playbooks, which all share when somebody imports several into one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"


def tasks_in(node):
    """Every mapping in a playbook, tasks among them."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        yield from tasks_in(child)


def test_what_a_play_keeps_hides_no_variable_of_the_next():
    """A fact outlives its play and wins over variables: after `status`, the next playbook of a site's own would take
    what status saw for what it asked itself."""
    variables = set(yaml.safe_load((PLAYBOOKS / "vars" / "request.yml").read_text()))
    kept = {}
    for path in PLAYBOOKS.rglob("*.yml"):
        for task in tasks_in(yaml.safe_load(path.read_text())):
            names = [*task.get("ansible.builtin.set_fact", {}), *([task["register"]] if "register" in task else [])]
            kept.update(dict.fromkeys(names, path.name))
    assert {"_parts", "_of_proxies"} <= set(kept)
    assert {name: where for name, where in kept.items() if name in variables} == {}


def test_hosts_come_in_the_inventorys_order(tmp_path):
    """The scheduler breaks ties by it: the same request would land on another host each time."""
    names = [f"gpu{number}" for number in (3, 1, 2, 6, 5, 4)]
    (tmp_path / "hosts").write_text("\n".join(["[hypervisor_lxc]", *names, "[hypervisor_kvm]", "kvm1", names[0], ""]))
    words = ["localhost", "-i", str(tmp_path / "hosts"), "-c", "local", "-e", f"@{PLAYBOOKS / 'vars' / 'request.yml'}"]
    words += ["-m", "ansible.builtin.debug", "-a", "msg={{ _hosts | join(' ') }}"]
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "adhoc", *words], capture_output=True, text=True, check=False
    )
    assert f'"msg": "{" ".join([*names, "kvm1"])}"' in done.stdout, done.stdout + done.stderr
