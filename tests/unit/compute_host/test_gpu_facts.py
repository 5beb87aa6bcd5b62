# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as facts: what module gpu_facts returns, and that the local fact is the same.

Tests nodes/compute_host/local_fact.py.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import gpu_facts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import local_fact
from ansible_collections.hetero.compute.plugins.modules import gpu_facts as module
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import DRIVER, uuid_of

#: A machine that was not set up.
NOWHERE = "/nowhere/host.json"


@pytest.fixture
def config(tmp_path):
    """The configuration of a host whose folder of containers is its own, and empty."""
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"lxcpath": str(tmp_path / "lxc")}))
    return path


@pytest.fixture
def process(four):
    """A process of a container, as /proc shows it, that holds nodes."""

    def start(pid, cgroup, *nodes):
        folder = four.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        for number, node in enumerate(nodes):
            (folder / "fd" / str(number)).symlink_to(four.root / "dev" / node)
        for name, text in (("cgroup", f"0::{cgroup}\n"), ("comm", "python3\n"), ("maps", "")):
            (folder / name).write_text(text)

    start("self", "/user.slice")
    return start


def test_facts_are_plain_and_say_who_has_what(four, process, config):
    """Plays choose by these; a holder that is not shown would have its GPU asked for twice."""
    process(101, "/lxc.payload.ml-7", "nvidia2", "nvidiactl")
    process(102, r"/machine.slice/machine-qemu\x2d3\x2dwin.scope", "nvidia1")
    four.pci("0000:0b:00.0", 0x10DE, 0x2335, driver="vfio-pci")
    seen = gpu_facts.look(str(config), paths=four.paths)
    assert json.loads(json.dumps(seen)) == seen
    first, second, kept, third, fourth = seen["gpus"]
    assert first == {
        "address": "0000:05:00.0",
        "uuid": uuid_of(2),
        "minor": 2,
        "index": 0,
        "vendor": "nvidia",
        "device_id": "10de:1091",
        "model": "Tesla M2090",
        "arch": "fermi",
        "driver": "nvidia",
        "driver_version": DRIVER,
        "numa_node": 0,
        "iommu_group": None,
        "nodes": [
            {
                "path": "/dev/nvidia2",
                "kind": "c",
                "major": 195,
                "minor": 2,
                "mode": "0666",
                "uid": 0,
                "gid": 0,
                "present": True,
                "why_absent": None,
            }
        ],
        "drm_nodes": [],
        "healthy": True,
        "why_unhealthy": None,
        "unsupported": None,
        "note": None,
        "holder": "ml-7",
        "holders": [{"kind": "container", "name": "ml-7"}],
        "processes": [{"pid": 101, "command": "python3", "container": "ml-7", "domain": None}],
    }
    assert [(gpu["holder"], gpu["processes"]) for gpu in (second, third)] == [(None, []), (None, [])]
    assert kept["holders"] == [{"kind": "vfio", "name": "vfio-pci"}]
    assert (fourth["holder"], fourth["holders"]) == ("win", [{"kind": "libvirt", "name": "win"}])
    assert [node["path"] for node in seen["shared"]][:2] == ["/dev/nvidiactl", "/dev/nvidia-modeset"]


def test_the_local_fact_is_the_same_list(four, process, config):
    """ansible_local.hetero_gpus and hetero_gpus must never tell two stories."""
    assert (
        json.loads(local_fact.local_fact(str(config), four.paths))
        == gpu_facts.look(str(config), paths=four.paths)["gpus"]
    )


def test_the_command_prints_one_line_of_json_on_any_machine(capsys):
    """Ansible takes the output of a local fact for JSON, and a host without GPUs must not break its setup."""
    assert local_fact.main(["--config", NOWHERE]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


def test_overrides_of_the_configuration_and_of_the_task(four, process, config, monkeypatch):
    """The operator writes the lasting ones into the inventory, and tries others from a task."""
    settings = json.loads(config.read_text())
    settings["gpu_overrides"] = {"10de:1091": "kepler", "0000:06:00.0": "kepler"}
    config.write_text(json.dumps(settings))
    monkeypatch.setattr(module, "look", partial(gpu_facts.look, paths=four.paths))
    given = {"0000:06:00.0": {"arch": "volta"}, "77": {"arch": "ada"}}
    warnings = []
    result = module.work({"config": str(config), "overrides": given}, False, warnings.append)
    gpus = result["ansible_facts"]["hetero_gpus"]
    assert [gpu["arch"] for gpu in gpus] == ["kepler", "volta", "fermi", "kepler"]
    assert warnings == ["no GPU here is 77, which the overrides name"]
    assert (result["changed"], result["driver_version"], result["unsupported"]) == (False, DRIVER, None)
    config.write_text(json.dumps({"gpu_overrides": ["fermi"]}))
    with pytest.raises(BadInput, match=r'host.json: gpu_overrides: is \["fermi"\]: give a mapping'):
        module.work({"config": str(config), "overrides": {}}, False, warnings.append)
