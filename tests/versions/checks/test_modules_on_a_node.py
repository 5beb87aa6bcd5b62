# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy and a GPU host with one Python, under one ansible-core. If these fail, the collection does not run on it.

Run by tests/versions/matrix.py for each pair that ansible-core supports. Nodes are folders, hardware is played
(tests/unit/plays/proxies.py); the tests of each subject try what hardware answers.

Nodes are set up first, by a module that Ansible sends with all that it imports, as it does with each module where a
node is not set up. From then on modules are called as on any set-up node: from the node's own copy, which its Python
compiles once.
"""

from __future__ import annotations

import ast
import json

import pytest

from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, LIB, PROJECT

GPU = FOUR[0][0]
SMALL = {"name": FLAVOR, "cpu_arch": "TILEPro64"}
CONTAINER = {"name": "cg1.xlarge", "extra_specs": {"hypervisor": "s== LXC", "gpus": "= 1", "gpu_arch": "s== fermi"}}
NOVA = {"DEFAULT": {"my_ip": "10.0.2.1"}}
GUEST = {"name": "kg1.large", "extra_specs": {"hypervisor": "s== KVM"}}


def succeeds(**fields):
    """The module did its work, and its result has these fields."""
    return fields


def refuses(words):
    """There is no such hardware here: the module's own error says so in these words."""
    return words


def claimed(kind, flavor, **more):
    return dict(instance=kind, owner="jo", flavor=flavor, image="debian", ssh_public_key=KEY, **more)


#: (node, module, arguments, what becomes of it): what makes them nodes that are set up.
SETTING_UP = [
    (node, "node_tools", {"commands": {"/usr/local/sbin/hetero": "hetero"}}, succeeds(changed=True))
    for node in ("p1", "gpu1")
]
#: Calls of a node that is set up, in an order in which one makes what the next needs.
CALLS = [
    ("p1", "board_info", {}, succeeds(changed=False)),
    ("p1", "image_store", {"node": "proxy"}, succeeds(changed=False)),
    ("p1", "instance", {"instance": "nobody", "kind": "board", "state": "absent"}, succeeds(changed=False)),
    ("p1", "board_claim", claimed("jackie", SMALL), succeeds(changed=True)),
    ("p1", "board_image", {"boards": [0]}, succeeds(changed=True)),
    ("p1", "tilera_boot", {"boards": [0], "timeout": 20}, succeeds(changed=True)),
    ("p1", "board_info", {"boards": [0], "power": True}, succeeds(changed=False)),
    ("p1", "pdu_info", {"pdu": "pdu-a"}, succeeds(changed=False)),
    ("p1", "pdu_power", {"pdu": "pdu-a", "outlets": ["1"], "state": "on"}, succeeds(changed=False)),
    ("p1", "ticket", {"instance": "lab", "kind": "board", "owner": "jo", "state": "absent"}, succeeds(changed=False)),
    ("p1", "board_lease", {"instance": "jackie", "hours": 2}, succeeds(changed=True)),
    ("p1", "board_console_info", {"board": 0}, refuses("console")),
    ("p1", "board_reconcile", {}, succeeds(changed=False)),
    ("p1", "board_wipe", {"boards": [1]}, succeeds(changed=False)),
    ("p1", "board_check", {}, succeeds(changed=False)),
    ("p1", "board_check", {"boards": [1]}, refuses("no RAM image is configured")),
    ("p1", "tilera_boot", {"boards": [0], "state": "stopped"}, succeeds(changed=True)),
    ("p1", "board_rebuild", {"instance": "jackie", "image": "debian", "fresh": True}, succeeds(changed=True)),
    ("p1", "board_image", {"boards": [0], "state": "absent"}, succeeds(changed=True)),
    ("p1", "board_claim", {"instance": "jackie", "state": "absent"}, succeeds(changed=True)),
    ("p1", "board_maintenance", {"boards": [1], "state": "on", "reason": "fan"}, succeeds(changed=True)),
    ("p1", "board_cabling", {"boards": [0], "timeout": 5}, succeeds()),
    ("p1", "proxy_check_info", {"server": "10.0.2.254"}, refuses("was not started by systemd")),
    ("p1", "node_files", {"folders": {"/tmp/kept": "0755"}}, succeeds(changed=True)),
    ("p1", "show", {"lines": ["read"]}, succeeds(changed=False)),
    ("p1", "hand_over", {"plan": {"parts": []}}, succeeds(changed=False)),
    ("p1", "ssh_config", {"folder": "/tmp/ssh", "instances": [{"instance": "jackie"}], "state": "absent"}, succeeds()),
    ("p1", "nova_flags", {"path": "/tmp/nova.conf", "flags": NOVA}, succeeds(changed=True)),
    ("p1", "nova_pci", {"kind": "compute"}, succeeds(changed=False)),
    ("p1", "nova_pci_info", {"services": [{"kind": "compute"}]}, succeeds(changed=False)),
    ("gpu1", "instance_copy", {"instance": "nobody", "created": 1, "step": "described"}, refuses("no such instance")),
    ("gpu1", "gpu_facts", {}, succeeds(changed=False)),
    ("gpu1", "gpu_reconcile", {}, succeeds(changed=False)),
    ("gpu1", "host_info", {}, succeeds(changed=False)),
    ("gpu1", "host_reconcile", {}, succeeds(changed=False)),
    ("gpu1", "host_check_info", {"network": "10.0.80.0/24"}, refuses("program systemd-detect-virt is not installed")),
    ("gpu1", "instance", claimed("ml-7", CONTAINER), refuses("no such image in the store")),
    ("gpu1", "lxc_gpu_attach", {"container": "ml-7", "gpus": [GPU]}, refuses("liblxc.so.1: is not there")),
    ("gpu1", "cgroup_info", {"cgroup": "/none.slice", "rules": ["c 195:0 rw"]}, refuses("none.slice")),
    ("gpu1", "cgroup_devices", {"cgroup": "/none.slice", "rules": ["c 195:0 rw"]}, refuses("none.slice")),
    ("gpu1", "instance", claimed("ml-9", GUEST), refuses("no such image in the store")),
    ("gpu1", "libvirt_hostdev", {"domain": "ml-9", "devices": [GPU]}, refuses("program virsh is not installed")),
    ("gpu1", "pci_info", {}, succeeds(changed=False)),
    ("gpu1", "pci_check_info", {}, refuses("was not started by systemd")),
    ("gpu1", "pci_driver", {"devices": [GPU]}, refuses(GPU)),
    ("p1", "node_info", {"node": "proxy"}, succeeds(changed=False)),
    ("gpu1", "node_info", {"node": "host"}, succeeds(changed=False)),
]

#: Modules that run on the controller only: the steps of a request, and what writes a site's files.
OF_THE_CONTROLLER = {"request", "site_files"}
#: A module of each part of the collection, none that needs what another has made.
SOME = [
    "board_info",
    "image_store",
    "pdu_info",
    "show",
    "nova_flags",
    "gpu_facts",
    "host_info",
    "pci_info",
    "node_info",
]


SOME_CALLS = [call for call in CALLS if call[1] in SOME and "boards" not in call[2]]
#: What -v says of a module that is not called from the node's copy (plugin_utils/short_calls.py).
SENT = "is sent with all that it imports"
#: Of a module's imports of module_utils, as Ansible finds them in a module that is no part of the collection.
UTILS = "ansible_collections.hetero.compute.plugins"
EVERYTHING = """\
#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
{imports}

AnsibleModule({{}}).exit_json(changed=False)
"""


@pytest.fixture
def one_copy(both_kinds, tmp_path):
    """Both nodes with one folder for the copy: what one has compiled the other, which has the same Python, need not."""
    proxy, host, _plays = both_kinds
    (tmp_path / "copies").mkdir(mode=0o755)
    for node in (proxy, host):
        node.put_folder(tmp_path / "copies", LIB)
    return both_kinds


def test_node_runs_every_module(one_copy):
    results = run(one_copy, SETTING_UP + CALLS)[len(SETTING_UP) :]
    assert results[6]["boards"][0]["state"] == "running"
    assert results[6]["boards"][0]["power"] == "on"


def test_node_runs_a_module_of_each_part(one_copy):
    run(one_copy, SETTING_UP + SOME_CALLS)


def test_node_that_is_not_set_up_is_sent_modules(both_kinds):
    """Once for each ansible-core, which finds what a module imports: a user's node before its first set-up, or with
    another release's. What is not found there ends the call before it began.
    """
    _proxy, _host, plays = both_kinds
    (plays.folder / "library").mkdir()
    lines = sorted({line for path in PROJECT.glob("plugins/modules/*.py") for line in imports_of(path)})
    assert len(lines) > 40, lines
    everything = plays.folder / "library" / "everything.py"
    everything.write_text(EVERYTHING.format(imports="\n".join(lines)))
    own = [(node, "everything", {}, succeeds(changed=False)) for node in ("p1", "gpu1")]
    run(both_kinds, own + SOME_CALLS, sent=True)


def imports_of(path):
    """The lines by which a module imports what is the collection's own, with whole names."""
    for line in ast.walk(ast.parse(path.read_text())):
        if isinstance(line, ast.ImportFrom) and line.level == 2:
            yield f"from {UTILS}.{line.module} import {', '.join(sorted(name.name for name in line.names))}"


def run(both_kinds, calls, sent=False):
    """What each of these calls answered, in a play over both nodes: each as it has to be.

    :param sent: modules are sent with all that they import, and else called from the node's copy.
    """
    _proxy, _host, plays = both_kinds
    book = []
    for node in ("p1", "gpu1"):
        numbers = [n for n, call in enumerate(calls) if call[0] == node]
        tasks = [
            {full_name(calls[n][1]): calls[n][2], "register": f"result_{n}", "ignore_errors": True} for n in numbers
        ]
        told = "{{ {" + ", ".join(f"'{n}': result_{n}" for n in numbers) + "} | to_json }}"
        kept = {"dest": str(plays.folder / f"{node}.json"), "content": told}
        tasks.append({"ansible.builtin.copy": kept, "delegate_to": "localhost"})
        book.append({"hosts": node, "gather_facts": node == "p1", "tasks": tasks})
    (plays.folder / "modules.json").write_text(json.dumps(book))
    rc, output = plays.end(plays.start_file("modules.json", "-v"), limit=900)
    assert rc == 0, output
    assert (SENT in output) == sent, output
    told = {}
    for node in ("p1", "gpu1"):
        told.update(json.loads((plays.folder / f"{node}.json").read_text()))
    results = [told[str(n)] for n in range(len(calls))]
    wrong = [call[1:2] + (result,) for call, result in zip(calls, results) if not is_as_it_has_to_be(call[3], result)]
    assert wrong == [], json.dumps(wrong, indent=1)
    (gpus,) = [result["ansible_facts"]["hetero_gpus"] for result in results if "ansible_facts" in result]
    assert len(gpus) == 4
    return results


def full_name(module):
    return module if module == "everything" else f"hetero.compute.{module}"


def is_as_it_has_to_be(outcome, result):
    if "MODULE FAILURE" in json.dumps(result) or "Traceback" in json.dumps(result):
        return False
    if isinstance(outcome, dict):
        return not result.get("failed") and all(result[name] == value for name, value in outcome.items())
    return bool(result.get("failed")) and outcome in result["msg"]
