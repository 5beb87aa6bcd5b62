# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards and GPU hosts asked as one. If these fail, one name is two instances, or a user is not told what there is.

What a container does when it runs is tests/unit/instances' and molecule's; here it is claimed only.
"""

from __future__ import annotations

import json
import os

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.paths import Paths
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.open_rights import Live
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, PROJECT, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
TYPES = yaml.safe_load((PROJECT / "playbooks" / "vars" / "instance_types.yml").read_text())["hetero_instance_types"]


def claim(host, instance, owner):
    """What a play that was killed after its claim has left: two GPUs, and no container."""
    gpus = discovery.find(None, Paths.below(str(host.root))).gpus
    capacity = dict(memory_mb=65536, vcpus=32, local_gb=640)
    asked = Asked(instance, owner, TYPES["cg1.xlarge"], "debian", KEY, "lxc", GpuRequest(2, "fermi"))
    with Store(host.state_db) as store:
        store.claim(asked, capacity, lambda: Live(()), gpus)
        store.put(instance, address=f"10.0.81.{10 + len(store.claims())}")


def names(host):
    with Store(host.state_db, create=False) as store:
        return [one.instance for one in store.claims()]


def test_one_name_one_answer_one_table(both_kinds):
    """A name is asked of proxies and hosts; who gets nothing reads a reason for each kind; all of it is one table."""
    proxy, host, plays = both_kinds
    (plays.folder / "snapshots").mkdir()
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    claim(host, "ml-7", "jo")
    claim(host, "ml-8", "alice")
    requests = [
        (dict(instance="ml-8", flavor=FLAVOR, image="debian"), "ml-8: belongs to alice"),
        (dict(instance="ml-7", flavor=FLAVOR, image="debian"), "with another flavor"),
        (dict(instance="jackie", flavor="cg1.xlarge"), "with another flavor"),
        (dict(instance="bob", flavor="tgx.8x8"), "no node."),
        (dict(instance="ml-9", flavor="cg1.xlarge"), "no node."),
    ]
    outputs = []
    started = [plays.start("provision_instance", **request) for request, _words in requests]
    for process, (_request, words) in zip(started, requests):
        rc, output = plays.end(process)
        assert (rc, changed(output)) == (2, 0), output
        assert words in output
        outputs.append(output.replace("\\n", "\n"))
    assert "\n  2 boards: cpu_arch TILEPro64 is not tile-gx64" in outputs[3]
    assert "\n  gpu1: cpu_arch x86_64 is not tile-gx64" in outputs[3]
    assert "\n  2 boards: hypervisor tilera_hv does not satisfy 's== LXC', has no gpus, has no gpu_arch" in outputs[4]
    first, second = (", ".join(address for address, *_more in two) for two in (FOUR[:2], FOUR[2:]))
    assert f"\n  gpu1: 2 fermi GPUs wanted: {first} allocated to ml-7 since " in outputs[4]
    flags = dict(json="true", html="nodes.html", hetero_snapshot_folder=plays.folder / "snapshots")
    rc, output = plays.play("status", **flags)
    assert (rc, changed(output)) == (0, 0), output
    (line,) = [line for line in output.splitlines() if line.startswith("{")]
    seen = json.loads(line)
    assert seen["proxies"]["p1"]["boards"][0]["instance"] == "jackie"
    assert [one["instance"] for one in seen["hosts"]["gpu1"]["instances"]] == ["ml-7", "ml-8"]
    assert json.loads((plays.folder / "snapshots" / "gpu1.json").read_text()) == seen["hosts"]["gpu1"]
    page = (plays.folder / "nodes.html").read_text()
    assert all(f">{text}<" in page for text in ("GPU hosts", "jackie", "ml-7", "board0", "gpu1", FOUR[0][0]))
    rc, output = plays.play("status")
    table = [" ".join(line.split()) for line in output.splitlines()]
    assert any(line.startswith("gpu1 gpu fermi ×4 cg1.xlarge 0 of 4 free ml-7 ") for line in table), output
    assert any(line.startswith("board0 board TILEPro64 tp64.8x8 running jackie") for line in table)
    row = next(n for n, line in enumerate(table) if line.startswith("ml-8 "))
    assert table[row + 1] == f"{second}; claimed"  # a note for which a row has no room has a line of its own


def console(plays):
    rc, output = plays.play("console", instance="ml-7")
    assert rc == 0, output
    return output


def test_verbs_find_a_container_by_its_name(both_kinds):
    """What is another's is refused; what is ours is extended, shown and ended, whatever kind it is."""
    _proxy, host, plays = both_kinds
    claim(host, "ml-7", "jo")
    claim(host, "ml-8", "alice")
    refused = [plays.start(verb, instance="ml-8") for verb in ("stop_instance", "terminate_instance", "console")]
    for process in refused:
        rc, output = plays.end(process)
        assert (rc, "ml-8 belongs to alice, not to jo" in output) == (2, True), output
    rc, output = plays.play("extend_instance", instance="ml-7", hours="48")
    assert (rc, changed(output)) == (0, 1), output
    assert "ml-7 has gpu1, lease: until " in output
    log = host.root / "var" / "lib" / "lxc" / "ml-7" / "console.log"
    assert not log.exists()
    nothing = "ml-7 is a container on gpu1, and its console has said nothing yet: "
    assert f"{nothing}there is no /var/lib/lxc/ml-7/console.log there" in console(plays)
    log.parent.mkdir(parents=True)
    log.touch()
    assert f"{nothing}/var/lib/lxc/ml-7/console.log there is empty" in console(plays)
    log.write_text("login:")
    output = console(plays)
    assert "ml-7 is a container on gpu1; its console log is there: /var/lib/lxc/ml-7/console.log" in output
    assert "lxc-console -P /var/lib/lxc -n ml-7 -t 0" in output
    rc, output = plays.play("reconcile")
    assert rc == 0, output
    assert "2 containers: 0 as recorded, 0 mended, 2 to look at" in output
    # a hand put that there, and what was not made for a claim does not go with it
    log.unlink()
    log.parent.rmdir()
    rc, output = plays.play("terminate_instance", instance="ml-7")
    assert (rc, changed(output)) == (0, 1), output
    assert names(host) == ["ml-8"]
    rc, output = plays.play("terminate_instance", instance="ml-7")
    assert (rc, changed(output)) == (0, 0), output
    assert "ml-7: no such instance on p1, gpu1" in output


def test_a_play_of_ones_own_says_which_kind_on_a_machine_that_is_both(both_kinds):
    """Lost: a container that an own play ends by its name alone, and hears changed=false; or the words, in a traceback.

    A verb that takes long goes on in the background, and is refused before.
    """
    proxy, host, plays = both_kinds
    here, there = (node.folder / "etc" / "hetero" / "host.json" for node in (proxy, host))
    here.write_bytes(there.read_bytes())
    asked = [dict(state="absent"), dict(state="stopped"), dict(state="running", kind="container", board=0)]
    tasks = [{"hetero.compute.instance": dict(one, instance="ml-7"), "ignore_errors": True} for one in asked]
    (plays.folder / "own.yml").write_text(json.dumps([dict(hosts="p1", gather_facts=False, tasks=tasks)]))
    rc, output = plays.end(plays.start_file("own.yml"))
    assert (rc, changed(output)) == (0, 0), output
    said = "a proxy node (/etc/hetero/proxy.json) and a compute host (/etc/hetero/host.json): say what is meant"
    assert output.count(f'"msg": "kind: is not given, and {THIS_NODE} is {said}: kind board, container or guest"') == 2
    assert '"msg": "board: is of a board, and ml-7 is a container: leave it out"' in output


def test_a_proxy_node_of_what_runs_on_no_board_is_said(both_kinds):
    """Lost: a word that chose nothing, to who reads that a container runs as asked."""
    proxy, host, plays = both_kinds
    for flavor in ("cg1.xlarge", "9"):
        rc, output = plays.play("provision_instance", instance="ml-9", flavor=flavor, proxy="p1")
        assert rc != 0
        why = "proxy chooses among proxy nodes, for whose boards cg1.xlarge is not (hypervisor: s== LXC): leave it out"
        assert why in " ".join(output.split()), output
    assert not os.path.exists(host.state_db)
    assert not os.path.exists(proxy.state_db)
    _rc, output = plays.play("provision_instance", "--check", instance="ml-9", flavor="cg1.xlarge", proxy="")
    assert "proxy chooses" not in output, "an empty field of a form"
