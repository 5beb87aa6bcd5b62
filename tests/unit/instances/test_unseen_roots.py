# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a container whose folder, or the file system that holds it, is not mounted. If these fail, its address is
given to the next tenant, and the container that is mounted again takes it from them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import trees
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    folders,
    own_root,
    private_nodes,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at

UNSEEN = (
    "lxc/ml-8: its root is not to be seen here, and ml-8 has run: nothing of it is removed, its address is not "
    "freed: mount what holds it, or put it back; where nobody has it any more, ansible-playbook "
    "hetero.compute.rebuild_instance -e instance=ml-8 -e fresh=true makes a new one, which can be ended"
)


@pytest.fixture
def down(site):
    """ml-8 has run, and is stopped and unmounted."""
    site.claim(flavor=SMALL)
    site.up()
    own(site).write_text("ml-8's own")
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    return site


def own(site):
    return Path(site.container().folder) / "rootfs/own"


def states(site):
    return {one["instance"]: one["state"] for one in site.info()["instances"]}


@contextmanager
def unmounted(site, what):
    """All that is in the place of the containers' file system, or of one for this container alone, is elsewhere."""
    folder = Path(site.container().folder)
    place = site.lxcpath if what == "all" else folder
    away = site.folder / "unmounted"
    place.rename(away)
    if what != "folder":
        place.mkdir(mode=0o711)  # the bare mount point
    yield
    if what != "folder":
        place.rmdir()
    away.rename(place)


@pytest.mark.parametrize("what", ["folder", "mount point", "all"])
def test_the_end_of_what_is_not_mounted_frees_no_address(down, what):
    """Lost: bob's address, to a container that was said to be removed: mounted again, it starts with the host."""
    with unmounted(down, what):
        for check in (True, False):
            said = down.do(lifecycle.absent, check=check)
            assert said["failed"], said
            assert UNSEEN in said["msg"]
            assert states(down) == {"ml-8": "stopped"}
        if what == "all":
            shutil.rmtree(down.lxcpath)
            down.lxcpath.mkdir()
        (bobs,) = down.claim("bob", owner="bo", key=OTHER_KEY, flavor=SMALL)["instances"]
        assert bobs["ip"] == "10.0.81.11"
    assert down.up()["instances"][0]["state"] == "running"
    assert own(down).read_text() == "ml-8's own"
    assert not down.do(lifecycle.absent).get("failed")
    assert states(down) == {"bob": "claimed"}


def test_no_container_is_made_where_all_others_are_not_to_be_seen(down):
    """Lost: bob's container below the file system that is mounted again; or a GPU, as his folder was taken for a sign
    that it is mounted.
    """
    bob = partial(down.claim, "bob", owner="bo", key=OTHER_KEY, flavor=SMALL)
    with unmounted(down, "all"):
        bob()
        for check in (True, False):
            said = down.up("bob", check=check)["msg"]
            assert f"{down.lxcpath}: has no containers, and ml-8 was made in it: its file system may not be" in said
            assert not os.listdir(down.lxcpath)
        subprocess.run(re.search(r"\((mkdir -p .*)\)", said)[1], shell=True, check=True)  # as printed
        bob()  # what cannot be made has ended
        assert not down.up("bob", check=True).get("failed")
        (down.lxcpath / folders.MARK).unlink()
    assert down.up("bob")["instances"][0]["state"] == "running"


def test_its_lease_ends_it_once_it_is_seen(down):
    """Lost: an address, as above; or, in an instance's events, all else to the timer's word of each hour."""
    said = []
    with down.host() as host:
        host.store.put("ml-8", expires=time.time() - 120)
        with unmounted(down, "folder"):
            before = host.store.newest_events("ml-8", 50)
            assert not reap.reap(host, said.append)
            assert UNSEEN in said[0]
            assert host.store.newest_events("ml-8", 50) == before
        assert reap.reap(host, said.append)
    assert down.nothing_is_left()


def test_the_printed_way_ends_what_nobody_has_any_more(down):
    """Lost: a name and an address for good, with the disk of the host that held the root."""
    shutil.rmtree(down.container().folder)
    assert UNSEEN in down.do(lifecycle.absent)["msg"]
    assert not down.do(lifecycle.rebuilt, fresh=True).get("failed")
    assert not down.do(lifecycle.absent).get("failed")
    assert down.nothing_is_left()


@pytest.mark.parametrize("left", ["the rest", "nothing"])
def test_an_end_that_was_cut_off_is_ended(down, left):
    """Lost: what it had, for ever: its end was killed when its configuration, or all of it, was removed."""
    killed_at(private_nodes, "forget", lambda: down.do(lifecycle.absent))
    assert (states(down), down.container().defined) == ({"ml-8": "ending"}, False)
    if left == "nothing":
        shutil.rmtree(down.container().folder)
    assert not down.do(lifecycle.absent).get("failed")
    assert down.nothing_is_left()


def test_what_is_asked_for_again_after_an_end_that_was_cut_off_may_be_cut_off_as_well(down):
    """Lost: a name and an address, to a container that no verb took for the claim's own, nor for none."""
    killed_at(private_nodes, "forget", lambda: down.do(lifecycle.absent))
    killed_at(own_root, "record", down.up)
    assert down.container().defined
    assert down.up()["instances"][0]["state"] == "running"
    assert not down.do(lifecycle.absent).get("failed")
    assert down.nothing_is_left()


def test_a_rebuild_that_was_cut_off_is_not_ended_without_its_root(down):
    """Lost: an address, as above: the rebuild was killed before it had removed anything."""
    killed_at(trees, "remove_left", lambda: down.do(lifecycle.rebuilt, fresh=True))
    assert states(down) == {"ml-8": "rebuilding"}
    disks.unmount(down.container(), down.here.disks)
    with unmounted(down, "folder"):
        assert UNSEEN in down.do(lifecycle.absent)["msg"]
    assert not down.do(lifecycle.absent).get("failed")
    assert down.nothing_is_left()


def test_an_end_that_is_refused_changes_nothing(site):
    """Lost: that it runs, to who sees `ending` in status; and the root, at a start once its configuration is back."""
    site.claim(flavor=SMALL)
    site.up()
    config = Path(site.container().config_file)
    config.rename(config.with_name("away"))
    try:
        assert "is gone, and its container runs" in site.do(lifecycle.absent)["msg"]
        assert "is gone, and its container runs" in site.do(lifecycle.rebuilt, fresh=True)["msg"]
        (seen,) = site.info()["instances"]
        assert seen["state"] == "running"
        assert seen["image_hash"]
    finally:
        config.with_name("away").rename(config)
    assert not site.up().get("failed")


def test_a_root_is_kept_that_only_its_record_knows(site):
    """Lost: a root, by a start: its configuration is gone, and the database a copy of before the first start."""
    site.claim(flavor=SMALL)
    copy = backups.make(site.database)
    site.up()
    own(site).write_text("ml-8's own")
    site.do(lifecycle.stopped)
    put_back(site, copy)
    config = Path(site.container().config_file)
    config.rename(config.with_name("away"))
    with site.host() as host:
        (look,) = reconciliation.reconcile(host, Change(False), 5.0)["instances"]
    assert ["nothing is made in its place" in one["found"] for one in look["found"]] == [True], look
    for verb in (site.up, lambda: site.do(lifecycle.stopped), site.up):
        assert "ml-8/config: is gone, and ml-8 has run: nothing is made in its place" in verb()["msg"]
    assert own(site).read_text() == "ml-8's own"
    with unmounted(site, "mount point"):
        assert UNSEEN in site.do(lifecycle.absent)["msg"]
    assert os.path.exists(config.with_name("away"))


def test_one_that_was_moved_aside_is_said_to_be_its_claims(down):
    """Lost: the only root of an instance, to who removes what reconcile calls nobody's."""
    folder, aside = Path(down.container().folder), down.lxcpath / "ml-8.aside"
    folder.rename(aside)
    with down.host() as host:
        others = reconciliation.reconcile(host, Change(False), 5.0)["others"]
    aside.rename(folder)
    way = f"end nothing of it, and move it back to {folder}"
    assert others == [f"{aside} is the container of ml-8, moved: not touched: {way}"]
