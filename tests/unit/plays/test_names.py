# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the playbooks, which all share when somebody imports several into one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks

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


#: What is asked for, and of which names it is said that they are taken.
ASKED = (
    (dict(instance="jackie"), None),
    (dict(instance="localhost"), "localhost is"),
    (dict(instance="all"), "all is"),
    (dict(instance="ungrouped"), "ungrouped is"),
    (dict(instance="p1"), "p1 is"),
    (dict(instance="proxies"), "proxies is"),
    (dict(instance="p", count=2), None),
    # the names are p1-1 and p1-2
    (dict(instance="p1", count=2), None),
    (dict(instance="gpu", count=2), "gpu-2 is"),
    (dict(instance="gpu", count=3), "gpu-2, gpu-3 are"),
    (dict(instance="gpu", count=1), None),
    (dict(instance="gpu", count=10**12), "gpu-2, gpu-3 are"),
)


def test_names_of_the_inventory_are_no_names_for_instances(tmp_path):
    """Lost: who logs in to a proxy, or runs a play on it, is on a tenant's board of the same name."""
    plays = Playbooks(tmp_path, ["p1", "p2"], ["gpu-2", "gpu-3"])
    task = {"ansible.builtin.copy": {"content": "{{ _name_problem }}", "dest": f"{tmp_path}/said-{{{{ number }}}}"}}
    task["loop"] = [one for one, _words in ASKED]
    task["loop_control"] = {"index_var": "number"}
    task["vars"] = {"instance": "{{ item.instance }}", "count": "{{ item['count'] | default(1) }}"}
    play = dict(hosts="localhost", gather_facts=False, tasks=[task], vars_files=[str(PLAYBOOKS / "vars/request.yml")])
    (tmp_path / "ask.yml").write_text(json.dumps([play]))
    rc, output = plays.end(plays.start_file(str(tmp_path / "ask.yml")))
    assert rc == 0, output
    said = [(tmp_path / f"said-{number}").read_text() for number in range(len(ASKED))]
    tail = " in the inventory, as host or group, or a word of Ansible: name the instance otherwise"
    assert said == [words + tail if words else "" for _one, words in ASKED]


@pytest.mark.parametrize(
    ("playbook", "extra", "words"),
    [
        ("provision_instance", dict(instance="p1", flavor=FLAVOR), "p1 is in the inventory"),
        ("provision_instance", dict(instance="jackie", flavor=FLAVOR, wait="abc"), "Say for how many minutes at most"),
        ("provision_instance", dict(instance="jackie", flavor=FLAVOR, wait="nan"), "Say for how many minutes at most"),
        ("provision_instance", dict(instance="jackie", flavor=FLAVOR, wait="inf"), "Say for how many minutes at most"),
        ("provision_instance", dict(instance="jackie", flavor=FLAVOR, count="2.5"), "Say how many: -e count=3"),
        ("provision_instance", dict(instance="jackie", flavor=FLAVOR, count=10**6), "Say how many: -e count=3"),
        ("provision_instance", dict(instance="jackie", flavor="{{ [1] }}"), "Name a flavor: -e flavor=NAME, one of"),
        # a node that is to be left out, and is not
        ("reconcile", dict(remove="board7", without="p3"), "without: the inventory has no p3"),
        ("repair", dict(node="board3,4", proxy="p1"), "One board at a time: -e node=board3, then -e node=board4"),
        ("maintenance", dict(node="3,board5,7", proxy="p1", state="off"), "then -e node=board5, then -e node=board7"),
        ("repair", dict(node="board3,", proxy="p1"), "One board at a time: -e node=board3"),
        ("repair", dict(node="bord3", proxy="p1"), "Name the board (-e node=board3)"),
        ("repair", dict(node="3"), "of several proxy nodes (p1, p2), its own (-e proxy=NAME)"),
    ],
)
def test_a_request_that_is_none_is_answered_before_anybody_is_asked(tmp_path, playbook, extra, words):
    """The proxies are not there: a play that asked them would fail with other words, and of several boards that it
    names none would be found."""
    rc, output = Playbooks(tmp_path, ["p1", "p2"]).play(playbook, **extra)
    assert rc == 2, output
    assert words in " ".join(output.split()), output
    assert output.count("TASK [") <= 2, output
