# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers was moved (mv /var/lib/lxc /srv/lxc, lxcpath of the host's configuration names it) while a
container runs: its monitor's socket has the former path. If these fail, it is said to be stopped, and it runs; its
root, of a container of an earlier release, is removed under its processes by its end; and its GPUs are free for the
next one, while its processes can open them still.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import MINORS
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile

ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


def as_earlier(site):
    """Have its root be a folder, as an earlier release made it."""
    box = site.container("a")
    site.do(lifecycle.stopped, "a")
    root, config = Path(disks.root_of(box)), Path(box.config_file)
    whole = root.with_name("whole")
    os.system(f"cp -a {root} {whole}")
    disks.unmount(box, site.here.disks)
    Path(disks.file_of(box)).unlink()
    root.rmdir()
    whole.rename(root)
    text = re.sub(r"# hetero.compute: root .*\n", "", config.read_text())
    config.write_text(re.sub("(?m)^lxc.rootfs.path = .*$", f"lxc.rootfs.path = dir:{root}", text))
    box.reload()
    done = site.up("a")
    assert not done.get("failed"), done["msg"]


def move(site, new):
    os.rename(site.lxcpath, new)
    site.settings["lxcpath"] = str(new)
    site.config.write_text(json.dumps(site.settings))
    site.lxcpath = new


@pytest.fixture(params=["disk", "of an earlier release"])
def moved(site, request):
    """The host, and the init of instance a with a GPU, which runs."""
    site.claim("a", flavor=ONE, owner="jo", key=KEY)
    assert not site.up("a").get("failed")
    if request.param != "disk":
        as_earlier(site)
    pid = site.container("a").init_pid
    move(site, site.folder / "srv-lxc")
    yield site, pid
    if os.path.exists(f"/proc/{pid}"):
        os.kill(pid, signal.SIGKILL)


def held(site):
    with site.host() as host:
        return [row.address for row in host.store.allocations()]


def can_open(pid, gpu):
    return os.path.exists(f"/proc/{pid}/root") and of_container(pid, "a").look().may("c", 195, MINORS[gpu], "rw")


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.stopped, lifecycle.absent])
def test_it_is_left_alone_until_it_is_moved_back(moved, verb):
    site, pid = moved
    gpus, new, former = held(site), site.lxcpath, site.lxcpath.with_name("lxc")
    said = site.do(verb, "a")["msg"]
    assert f"its container, which lies in {new}/a, runs, and was started in {former}/a" in said
    assert os.path.exists(f"/proc/{pid}/root/sbin/init"), "its root was removed under it"
    assert (held(site), can_open(pid, gpus[0])) == (gpus, True)
    (found,) = found_by_reconcile(site, "a")
    assert f"runs, and was started in {former}/a" in found
    move(site, former)
    assert not site.do(lifecycle.stopped, "a").get("failed")
    assert not os.path.exists(f"/proc/{pid}")
    disks.unmount(site.container("a"), site.here.disks)
    move(site, new)
    assert not site.do(verb, "a").get("failed")


def test_its_gpu_is_not_given_to_another(moved):
    """Nor taken back by module lxc_gpu_attach."""
    site, pid = moved
    (gpu,) = held(site)
    site.do(lifecycle.stopped, "a")  # any verb knows it in its new place
    with site.host() as host:
        with pytest.raises(Refused, match="runs, and was started in"):
            attachment.detach(host.site, site.container("a"), [gpu], Change(False), Deadline(20))
        seen = host.site.look()
        free = not host.store.allocations() and not list(seen.open(gpu))
    assert not (free and can_open(pid, gpu)), "free for anybody, and it can open it still"
