# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers was moved while an instance ran, and an earlier release wrote down its new place: it counted
as one that does not run. Or it was moved while none ran, and a link has the former path since. If these fail, the verbs
say that one which runs is stopped, start it a second time or remove its root; or call one with a GPU an error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, identity
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile

ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


@pytest.fixture
def running(site):
    site.claim("a", flavor=ONE, key=KEY)
    assert not site.up("a").get("failed")
    return site


def move(site):
    """Move the folder of containers, and have the configuration name the new one."""
    former, new = site.lxcpath, site.folder / "srv-lxc"
    os.rename(former, new)
    site.settings["lxcpath"] = str(new)
    site.config.write_text(json.dumps(site.settings))
    site.lxcpath = new
    return former


def test_nothing_is_done_by_the_path_by_which_it_seems_stopped(running):
    site, box = running, running.container("a")
    pid, former = box.init_pid, move(running)
    with site.host() as host:
        host.store.put("a", container=identity.key_of(site.container("a")))
    for verb in (lifecycle.stopped, lifecycle.running, lifecycle.rebooted, lifecycle.absent):
        said = site.do(verb, "a")["msg"]
        assert f"runs, and was started in {former}/a: LXC knows it by that path alone" in said
    (found,) = found_by_reconcile(site, "a")
    assert "runs, and was started in" in found
    assert os.path.exists(f"/proc/{pid}/root/sbin/init")
    subprocess.run(shlex.split(re.search(r"\((lxc-stop [^;)]*)", said)[1]), check=True)
    assert not os.path.exists(f"/proc/{pid}")
    assert not site.up("a").get("failed")
    assert site.container("a").running


def test_one_with_a_gpu_goes_on_though_a_link_has_the_former_path(running):
    site = running
    site.do(lifecycle.stopped, "a")
    disks.unmount(site.container("a"), site.here.disks)
    former = move(site)
    assert not site.up("a").get("failed")
    os.symlink(site.lxcpath, former)
    done = site.up("a")
    assert not done.get("failed"), done["msg"]
    assert site.container("a").running
