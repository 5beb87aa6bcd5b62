# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As guests/test_forgotten_addresses.py, of containers: address, range of ids, GPUs, and the folder of all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.unclaimed_instances import (
    of_no_instance,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, id_maps
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back

FIRST = 1000000
ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


@pytest.fixture
def forgotten(site):
    """jo's ml-8 with a GPU, stopped, of which no claim is known; the folder of containers is not mounted."""
    site.claim("ml-7", flavor=SMALL)
    copy = backups.make(site.database)
    site.claim("ml-8", flavor=ONE)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped, "ml-8")
    with site.host() as host:
        site.had = host.store.claim_of("ml-8").address, [row.address for row in host.store.allocations()]
    disks.unmount(site.container(), site.here.disks)
    put_back(site, copy)
    site.lxcpath.rename(site.folder / "unmounted")
    site.lxcpath.mkdir()
    return site


def bobs(site, flavor):
    site.claim("bob", owner="bo", key=OTHER_KEY, flavor=flavor)
    with site.host() as host:
        return host.store.claim_of("bob"), [row.address for row in host.store.allocations()]


def test_its_address_and_its_ids_are_given_to_nobody(forgotten, monkeypatch):
    """Lost: what keeps jo's container apart from bo's, once what holds it is mounted again."""
    for name in ("uid", "gid"):
        (forgotten.folder / f"sub{name}").write_text(f"root:{FIRST}:{4 * id_maps.COUNT}\n")
    monkeypatch.setattr(id_maps, "FILES", tuple(str(forgotten.folder / f"sub{name}") for name in ("uid", "gid")))
    forgotten.config.write_text(json.dumps({**forgotten.settings, "unprivileged": True}))
    with forgotten.host() as host:  # as if it had been made so
        host.store.records.write(replace(host.store.records.read("ml-8"), first_id=FIRST))
    bob, _gpus = bobs(forgotten, SMALL)
    assert bob.address not in (None, forgotten.had[0])
    assert bob.first_id == FIRST + id_maps.COUNT


def test_no_gpu_is_given_while_nobody_can_tell_which_is_its_own(forgotten):
    """Lost: jo's GPU, to bo, while jo's container cannot be seen."""
    with pytest.raises(NoneFree) as refused:
        bobs(forgotten, ONE)
    assert f"may be ml-8's: no claim of it is in the database of {THIS_NODE}" in str(refused.value)
    assert f"{forgotten.database[:-3]}.claims/ml-8.json" in str(refused.value)
    with forgotten.host() as host:
        (said,) = of_no_instance(host)
    assert "(the file system that holds it may not be mounted), and remove that file" in said
    forgotten.lxcpath.rmdir()
    (forgotten.folder / "unmounted").rename(forgotten.lxcpath)
    _bob, gpus = bobs(forgotten, ONE)
    assert len(gpus) == 1
    assert gpus != forgotten.had[1]


def test_one_without_a_gpu_keeps_nobody_from_the_gpus(forgotten):
    """Lost: each GPU of the host, to a container that has none."""
    with forgotten.host() as host:
        host.store.records.write(replace(host.store.records.read("ml-8"), flavor=SMALL))
    assert len(bobs(forgotten, ONE)[1]) == 1


def test_nothing_is_made_in_the_place_of_the_file_system_that_holds_it(forgotten):
    """Lost: the sign that the file system is not mounted, and bo's container, below it."""
    bobs(forgotten, SMALL)
    said = forgotten.up("bob")
    assert "lxc: has no containers, and ml-8 was made in it: its file system may not be mounted" in said["msg"]
    assert list(forgotten.lxcpath.iterdir()) == []
