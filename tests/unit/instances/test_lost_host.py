# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's database that is gone. If these fail, the GPUs, names and addresses of containers that run look free, and
the next who asks gets them.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils import backups
from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host import (
    backup,
    gpu_restore,
    instance_module,
    instances,
    reap,
)
from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host.config import state_db
from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host.host import Host
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils.gpus import attaching, discovery
from ansible_collections.hetero.compute.plugins.module_utils.lxc import persistence
from ansible_collections.hetero.compute.plugins.modules import host_info, host_reconcile
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, CG1, IMAGE
from ansible_collections.hetero.compute.tests.unit.instances.older import MODULES

OWN = ADDRESSES[:2]
LOST = "is not there, and instances were made on this node"
VERBS = [
    ("lxc_instance", dict(flavor=CG1, owner="eve", ssh_public_key=KEY, image=IMAGE, instance="ml-9", state="present")),
    *(("lxc_instance", dict(instance="ml-8", state=state)) for state in ("running", "stopped", "rebuilt", "absent")),
    ("lxc_instance", dict(instance="ml-8", state="extended", lease_hours=2.0)),
    ("host_info", {}),
    ("lxc_gpu_attach", dict(container="ml-8", state="detached")),
    ("lxc_gpu_attach", dict(container="ml-8", count=1)),
]


@pytest.fixture
def here(site, monkeypatch):
    """The host, where modules look for one; ml-8 runs there with two GPUs."""
    mine, find = partial(Host, paths=site.machine.paths, machine=site.here), discovery.find
    for module in (instance_module, host_info, host_reconcile, reap):
        monkeypatch.setattr(module, "Host", mine)
    monkeypatch.setattr(discovery, "find", lambda overrides=None, paths=None: find(overrides, site.machine.paths))
    begin = attaching.Site.__init__
    monkeypatch.setattr(begin, "__defaults__", (*begin.__defaults__[:2], site.machine.paths, site.here))
    site.claim()
    site.up()
    return site


def lose(site):
    for path in Path(state_db(site.settings)).parent.glob("host.db*"):
        path.unlink()


def module(site, name, check=False, **given):
    found = importlib.import_module(MODULES + name)
    params = {option: spec.get("default") for option, spec in found.SPEC.options.items()}
    return found.work(dict(params, **given, config=str(site.config)), check)


def test_nothing_goes_on_without_it_and_the_printed_way_brings_it_back(here):
    """Lost: what ml-8 has, to the next who asks; and the word that anything is wrong."""
    path = state_db(here.settings)
    copy = backups.make(path)
    lose(here)
    for check in (True, False):
        for name, given in [*VERBS, ("host_reconcile", {}), ("gpu_reconcile", dict(repair=True))]:
            with pytest.raises(HeteroError, match=LOST) as error:
                module(here, name, check, **given)
            assert f"container {here.lxcpath / 'ml-8'}" in str(error.value), name
            assert f"cp -p {copy} {path} and then" in str(error.value), name
    for main in (backup.main, reap.main):
        with pytest.raises(HeteroError, match=LOST):
            main(["--config", str(here.config)])
    assert not Path(path).exists(), "an empty one would hide the loss"
    assert here.can_open() == OWN
    command = re.search(r"run on this node: (.+?) and then", str(error.value))[1]
    subprocess.run(["sh", "-ec", command], check=True)
    assert [one["instance"] for one in module(here, "host_info")["instances"]] == ["ml-8"]


@pytest.mark.parametrize("runs", [True, False])
def test_without_a_copy_nobody_gets_what_a_container_has(here, runs):
    """Lost: GPUs under a running container, or of one that is down: closed by a repair, given to the next."""
    if not runs:
        here.do(instances.stopped)
    lose(here)
    dry = module(here, "host_reconcile", check=True)
    assert LOST in dry["warnings"][0]
    assert not Path(state_db(here.settings)).exists()
    said = module(here, "host_reconcile")
    assert LOST in said["warnings"][0]
    assert said["changed"]
    assert any("container ml-8" in text for text in said["others"])
    mended = module(here, "gpu_reconcile", repair=True)
    assert (mended["changed"], mended["findings"]) == (False, [])
    if runs:
        assert here.can_open() == OWN
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    with pytest.raises(NoneFree, match="there is a container ml-8 already"):
        here.claim()
    (other,) = here.claim("ml-9", owner="eve")["instances"]
    assert other["ip"] == "10.0.81.11", "the first address is that of who runs there"
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", "ml-9", "ml-9"]
    with pytest.raises(NoneFree, match="allocated to ml-8"):
        here.claim("ml-7", owner="eve")
    assert "warnings" not in module(here, "host_reconcile")


def test_a_restart_of_the_host_starts_its_containers_and_says_so(here, capfd):
    """Lost: the GPUs of each container at the next boot; or the word that the database is gone, by an empty one."""
    lose(here)
    box = here.container()
    box.stop()
    before = persistence.read(box)
    assert gpu_restore.main(["--config", str(here.config)]) == 1
    said = capfd.readouterr()
    assert "ml-8: GPUs ready" in said.out
    assert LOST in said.err
    assert not Path(state_db(here.settings)).exists()
    assert persistence.read(box) == before
    box.start()
    assert here.can_open() == OWN


def test_a_repair_alone_begins_anew_as_well(here):
    lose(here)
    mended = module(here, "gpu_reconcile", repair=True)
    assert LOST in mended["warnings"][0]
    assert mended["findings"] == []
    assert here.can_open() == OWN


def test_a_new_host_has_no_database_to_miss(site):
    """Lost: the first request on a host that was just set up, or where everything was given back."""
    with site.host() as host:
        assert host.store.claims() == []
    lose(site)
    site.claim(flavor=dict(CG1, memory_mb=64))
    site.do(instances.absent)
    lose(site)
    assert site.claim(flavor=dict(CG1, memory_mb=64))["new"] == ["ml-8"]
