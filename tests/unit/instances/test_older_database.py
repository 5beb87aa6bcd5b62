# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules in check mode on a host whose database the release before made. If these fail, a dry run of an upgrade
changes what it is to show, or ends where the real run would not.
"""

from __future__ import annotations

from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import compute_host
from ansible_collections.hetero.compute.plugins.modules import host_info, host_reconcile
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import CG1, IMAGE
from ansible_collections.hetero.compute.tests.unit.instances.older import as_before, looked_at

BOX = dict(kind="container")
ONE = dict(BOX, flavor=dict(CG1, memory_mb=64, vcpus=1, local_gb=1), owner="jo", ssh_public_key=KEY, image=IMAGE)
LOOKS = [
    *(("instance", dict(ONE, instance="ml-8", state=state)) for state in ("present", "running")),
    *(("instance", dict(ONE, instance="ml-9", state=state)) for state in ("present", "running")),
    *(("instance", dict(BOX, instance="ml-8", state=state)) for state in ("stopped", "rebooted", "rebuilt", "absent")),
    ("instance", dict(BOX, instance="ml-8", state="rebuilt", fresh=True)),
    ("instance", dict(BOX, instance="ml-8", state="extended", lease_hours=2.0)),
    ("host_reconcile", {}),
    ("host_info", dict(events=5)),
    ("gpu_reconcile", dict(repair=True)),
    ("gpu_reconcile", {}),
    ("lxc_gpu_attach", dict(container="ml-8", state="detached")),
    ("lxc_gpu_attach", dict(container="ml-8", count=1, persistent=False)),
]


@pytest.fixture
def here(site, monkeypatch):
    """The host, where modules look for one."""
    mine, find = partial(Host, places=Places(site.machine.paths, site.here)), discovery.find
    for module in (compute_host, host_info, host_reconcile):
        monkeypatch.setattr(module, "Host", mine)
    monkeypatch.setattr(discovery, "find", lambda overrides=None, paths=None: find(overrides, site.machine.paths))
    return site


def test_check_mode_leaves_an_older_database_as_it_is(here):
    """As it runs, and as it is where somebody ended the container by hand."""
    here.claim(flavor=ONE["flavor"])
    here.up()
    path = here.database
    as_before(path)
    for name, given in LOOKS:
        looked_at(path, name, dict(given, config=str(here.config)))
    here.container().stop()
    for name, given in LOOKS[:-2]:
        looked_at(path, name, dict(given, config=str(here.config)))
    seen = looked_at(path, "host_info", dict(config=str(here.config)))
    assert [one["instance"] for one in seen["instances"]] == ["ml-8"]
