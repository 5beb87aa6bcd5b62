# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs on containers that were killed in their middle, or timed out. If these fail, what a tenant has in a root goes
with the next verb; or the key that was to be replaced goes on opening it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.container import ContainerWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, new_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at


def data(site):
    return Path(site.container().folder) / "rootfs/root/work"


def shown(site):
    (one,) = site.info()["instances"]
    return one


def no_gpu(site):
    shutil.rmtree(site.machine.root / "sys/bus/pci/devices" / ADDRESSES[0])
    shutil.rmtree(site.machine.nvidia / "gpus" / ADDRESSES[0])


def no_sshd(site):
    sbin = Path(site.container().folder) / "rootfs/usr/sbin"
    (sbin / "sshd").rename(sbin / "away")
    site.container().stop()  # as at a boot of the host, which starts it again by itself
    site.container().start(20)


@pytest.mark.parametrize("fault", [no_gpu, no_sshd])
def test_what_ran_under_a_killed_request_is_not_taken_back(site, fault):
    """Lost: a tenant's root: the request was killed as it waited for ssh, and a GPU is gone when it is run again."""
    site.claim()
    killed_at(ContainerWork, "answer", site.up)
    assert site.container().running
    data(site).write_text("a week of work")
    fault(site)
    assert site.up(timeout=5.0)["failed"]
    assert data(site).exists()
    assert shown(site)["state"] == "error"


def test_what_ran_under_a_killed_request_is_no_surplus(site):
    """Lost: the same, to a play that gives back what another node of a request has too much."""
    site.claim()
    killed_at(ContainerWork, "answer", site.up)
    data(site).write_text("a week of work")
    said = site.do(lifecycle.absent, never_ran=True)
    assert "runs, or ran, since it was looked at" in said["msg"]
    assert data(site).exists()


@pytest.mark.parametrize("how", ["stop killed", "reboot killed", "reboot timed out"])
def test_a_stop_that_was_cut_off_is_no_end_that_was_begun(site, how):
    """Lost: a tenant's root, which is not mounted after a stop that was killed: start made a new one."""
    site.claim(flavor=SMALL)
    site.up()
    data(site).write_text("a week of work")
    if how == "reboot timed out":
        os.kill(site.container().init_pid, signal.SIGSTOP)  # its init does not answer
        assert site.do(lifecycle.rebooted, how="soft", soft_timeout=2.0)["failed"]
    else:
        verb = lifecycle.stopped if how == "stop killed" else lifecycle.rebooted
        killed_at(Container, "shutdown", lambda: site.do(verb))
    assert shown(site)["state"] == "shutting down"
    site.container().stop()
    disks.unmount(site.container(), site.here.disks)
    config = Path(site.container().config_file)
    config.rename(config.with_name("away"))
    assert "nothing is made in its place" in site.up()["msg"]
    config.with_name("away").rename(config)
    assert not site.up().get("failed")
    assert data(site).exists()


def test_an_end_that_was_cut_off_is_one_that_was_begun(site):
    """Lost: the name, and its GPUs, after an end that was killed when the root was gone."""
    site.claim(flavor=SMALL)
    site.up()
    killed_at(ContainerWork, "give_back", lambda: site.do(lifecycle.absent))
    assert (shown(site)["state"], site.container().defined) == ("ending", False)
    assert not site.do(lifecycle.absent).get("failed")
    assert site.info()["instances"] == []


@pytest.mark.parametrize("verb", ["rebuilt", "running", "rebooted"])
def test_a_rebuild_that_was_cut_off_is_ended_by_the_next_verb(site, tmp_path, verb):
    """Lost: that the old key opens it no more; that it runs what status says. It was killed before it had removed."""
    other = tmp_path / "newer"
    shutil.copytree(site.image, other, symlinks=True)
    (other / "root" / "NEWER").write_text("x")
    site.take_in(other, "newer")
    site.claim(flavor=SMALL)
    site.up()
    data(site).write_text("old")
    asked = dict(ssh_public_key=OTHER_KEY, image="newer")
    killed_at(Container, "stop", lambda: site.do(lifecycle.rebuilt, **asked))
    with site.host(create=False) as host:
        (look,) = reconciliation.reconcile(host, Change(False), 5.0)["instances"]
    assert any("its rebuild was cut off" in found["found"] for found in look["found"]), look
    said = site.do(getattr(lifecycle, verb), **(asked if verb == "rebuilt" else {}))
    assert not said.get("failed"), said
    keys = (data(site).parent / ".ssh/authorized_keys").read_text()
    assert (KEY in keys, OTHER_KEY in keys, data(site).exists()) == (False, True, False)
    assert (data(site).parents[1] / "NEWER").exists()
    assert (shown(site)["image"], shown(site)["state"]) == ("newer", "running")


def test_a_rebuild_that_failed_costs_no_claim(site, monkeypatch):
    """Lost: name, GPUs, address and lease, by a rebuild on a full disk and two starts after it."""
    site.claim(flavor=SMALL)
    site.up()

    def full(*_given):
        raise HeteroError("no space left", "the disk", "make space")

    with monkeypatch.context() as patch:
        patch.setattr(new_container, "create", full)
        for verb in (partial(site.do, lifecycle.rebuilt, fresh=True), site.up, site.up):
            assert "no space left" in verb()["msg"]
            assert shown(site)["state"] == "error", "its claim stays"
    assert not site.up().get("failed")


def test_no_third_gpu_is_given_for_one_that_another_can_open(site):
    """Lost: a GPU, to an instance of two of which one is open to a container of the operator's: it had three then."""
    site.claim()
    site.up()
    before = site.can_open()
    own = site.lxcpath / "own"
    (own / "rootfs").mkdir(parents=True)
    subprocess.run(["cp", "-a", f"{site.image}/root/.", own / "rootfs"], check=True)
    rule = f"c 195:{MINORS[ADDRESSES[0]]} rwm"
    lines = [f"lxc.rootfs.path = dir:{own}/rootfs", "lxc.uts.name = own", "lxc.net.0.type = empty"]
    lines += ["lxc.include = /usr/share/lxc/config/common.conf", "lxc.apparmor.profile = unconfined"]
    lines += ["lxc.init.cmd = /bin/sleep 1000", f"lxc.cgroup.devices.allow = {rule}"]
    lines += [f"lxc.cgroup2.devices.allow = {rule}"]
    (own / "config").write_text("".join(f"{line}\n" for line in lines))
    site.container("own").start(20)
    try:
        said = site.up()
        assert f"has GPU {ADDRESSES[0]}: container own can open it" in said["msg"]
        assert site.can_open() == before
    finally:
        site.container("own").stop()
        shutil.rmtree(own)
    assert not site.up().get("failed")
    assert site.can_open() == before


def test_a_gpu_that_was_taken_out_is_not_called_free_again(site):
    """Lost: an hour, to who looks for the GPU that terminate says to be free."""
    site.claim()
    site.up()
    site.do(lifecycle.stopped)
    no_gpu(site)
    said = site.do(lifecycle.absent)
    freed = f"; free again: {ADDRESSES[1]}; no more on this host: {ADDRESSES[0]}"
    assert [line["text"] for line in said["lines"]] == [f"container and root removed{freed}"]


def test_a_folder_called_config_is_no_container(site):
    """Lost: each verb of a host, to a folder that somebody made there: they ended with a traceback."""
    site.claim(flavor=SMALL)
    site.up()
    (site.lxcpath / "old" / "config").mkdir(parents=True)
    assert not site.up().get("failed")
    assert shown(site)["state"] == "running"
    assert not site.do(lifecycle.stopped).get("failed")
    assert not site.do(lifecycle.absent).get("failed")
    shutil.rmtree(site.lxcpath / "old")
