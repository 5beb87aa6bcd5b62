# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, the modules do not do what their documentation says, on a host that was set up, and on another."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery
from ansible_collections.hetero.compute.plugins.modules import gpu_reconcile, lxc_gpu_attach
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

FIRST = ADDRESSES[0]


@pytest.fixture
def call(host, monkeypatch, tmp_path):
    """Run a module's work with its defaults; the GPUs are the stood-in ones."""
    real = discovery.find
    monkeypatch.setattr(discovery, "find", lambda overrides=None: real(overrides, host.machine.paths))
    config = tmp_path / "host.json"

    def run(module, check=False, **given):
        params = {name: spec.get("default") for name, spec in module.SPEC.options.items()}
        params.update(config=str(config), state_db=host.state_db, lxcpath=host.boxes.lxcpath, **given)
        if given.get("settings"):
            config.write_text(json.dumps(params.pop("settings")))
        return module.work(params, check)

    return run


def test_given_for_one_run_audited_and_taken_back(host, call):
    box = host.boxes.make()
    asked = dict(container=box.name, gpus=[FIRST], persistent=False)
    assert call(lxc_gpu_attach, check=True, **asked)["changed"]
    assert host.can_open(box) == []
    given = call(lxc_gpu_attach, **asked)
    assert (given["changed"], host.can_open(box)) == (True, [FIRST])
    assert given["gpus"][0]["model"] == "Tesla M2090"
    assert call(lxc_gpu_attach, **asked)["changed"] is False
    # a proof of another test may have such a node open just now, and the module looks at all processes of the host
    assert [one for one in call(gpu_reconcile)["findings"] if one["kind"] != "used by the host"] == []
    taken = call(lxc_gpu_attach, container=box.name, state="detached")
    assert (taken["changed"], taken["gpus"], host.can_open(box)) == (True, [], [])
    assert json.loads(json.dumps(taken)) == taken


def test_an_architecture_that_is_not_here(host, call):
    box = host.boxes.make()
    with pytest.raises(NoneFree, match=r"wants 1 kepler GPU, none free: .* is fermi, not kepler"):
        call(lxc_gpu_attach, container=box.name, count=1, gpu_arch="kepler", persistent=False)


def test_the_hosts_configuration_counts(host, call, tmp_path):
    """What role gpu_lxc wrote: its overrides and its folders, where the module is told nothing else."""
    box = host.boxes.make()
    settings = dict(gpu_overrides={FIRST: {"arch": "volta"}}, state_folder=str(tmp_path / "state"))
    given = call(lxc_gpu_attach, container=box.name, count=1, gpu_arch="volta", persistent=False, settings=settings)
    assert [gpu["address"] for gpu in given["gpus"]] == [FIRST]
    (tmp_path / "host.json").write_text("{")
    with pytest.raises(BadInput, match="is not JSON"):
        call(gpu_reconcile)
