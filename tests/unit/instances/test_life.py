# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of an instance in a real container. If these fail, a user gets another's GPUs, loses one by a restart, is
told that runs what does not, or leaves something behind.

Tests compute_host/info.py, compute_host/lifecycle.py, compute_host/work.py.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.container import ContainerWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.work import Work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import compute_host
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.cloud_init import SEEDED
from ansible_collections.hetero.compute.plugins.modules import instance
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, CG1, IMAGE, MINORS

#: Lost without it: whether anything was done, to who asks twice.
ALREADY = "already running, ssh answers with its own host key"
USER_DATA = "#cloud-config\npassword: hunter2\n"
OWN, OTHERS = ADDRESSES[:2], ADDRESSES[2:]


def texts(result):
    return [line["text"] for line in result["lines"]]


def test_from_a_request_to_nothing_left(site):
    """All of a life: dry, made, again, rebooted, stopped, started, ended; its GPUs are open, the others closed."""
    would = site.claim(check=True)
    assert (would["changed"], site.info()["instances"]) == (True, [])
    assert site.claim()["new"] == ["ml-8"]
    first = site.up()
    (mine,) = first["instances"]
    assert (mine["state"], mine["gpus"], mine["isolation"]) == ("running", OWN, "cgroup"), first
    assert texts(first)[-3:] == [
        "container started",
        f"2 of 4 free fermi GPUs: {' '.join(OWN)} open; the other 2 proven closed",
        "ssh answers",
    ]
    assert mine["known_hosts"].startswith("10.0.81.10 ssh-ed25519 ")
    assert site.can_open() == OWN
    again = site.up()
    assert (again["changed"], texts(again), again["instances"][0]["state"]) == (False, [ALREADY], "running"), again
    (site.lxcpath / "ml-8" / "rootfs" / "root" / "kept").write_text("data")
    pid = site.container().init_pid
    site.do(lifecycle.rebooted)
    assert site.container().init_pid not in (pid, None)
    assert site.can_open() == OWN
    assert site.do(lifecycle.stopped)["changed"] is True
    assert site.do(lifecycle.stopped)["changed"] is False
    assert (site.container().running, site.info()["instances"][0]["state"]) == (False, "stopped")
    assert [gpu["holder"] for gpu in site.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    assert site.up()["changed"] is True
    assert site.can_open() == OWN
    assert (site.lxcpath / "ml-8" / "rootfs" / "root" / "kept").read_text() == "data"
    assert site.do(lifecycle.absent, check=True)["changed"] is True
    assert site.container().running
    gone = site.do(lifecycle.absent)
    assert texts(gone) == [f"container and root removed; free again: {' '.join(OWN)}"]
    assert site.nothing_is_left()
    assert site.do(lifecycle.absent)["changed"] is False


def test_a_dry_run_tells_how_it_ends_and_of_nothing_that_is_there_as_missing(site):
    """A reboot that ended stopped; a stop, and a start after it, that would put back a missing configuration."""

    def would(result):
        (entry,) = result["diff"]
        return texts(result), entry["after"]

    site.claim()
    site.up()
    lines, after = would(site.do(lifecycle.rebooted, check=True))
    assert (lines[0], after) == ("container would be stopped, and started again", {"boot": "another one"})
    lines, after = would(site.do(lifecycle.stopped, check=True))
    assert (lines, after) == (["container would be stopped"], {"autostart": False, "state": "stopped"})
    site.do(lifecycle.stopped)
    lines, after = would(site.up(check=True))
    assert (lines[0], after) == ("container would be started", {"autostart": True, "state": "running"})


def test_made_anew_with_another_key(site):
    """A user whose key was lost keeps name, address, GPUs and lease; what was in the root goes, as was said."""
    site.claim(lease_hours=5)
    before = site.up()["instances"][0]
    (site.lxcpath / "ml-8" / "rootfs" / "root" / "old").write_text("data")
    same = site.do(lifecycle.rebuilt)
    assert (same["changed"], same["instances"][0]["state"]) == (False, "running")
    assert texts(same)[0].startswith("nothing to rebuild: ml-8 has image ")
    would = site.do(lifecycle.rebuilt, ssh_public_key=OTHER_KEY, check=True)
    assert (would["changed"], site.container().running) == (True, True)
    done = site.do(lifecycle.rebuilt, ssh_public_key=OTHER_KEY)
    assert texts(done)[0].startswith("is made anew of ")
    after = done["instances"][0]
    kept = ("ip", "gpus", "expires", "created", "state")
    assert [after[key] for key in kept] == [before[key] for key in kept]
    assert after["host_key"] != before["host_key"]
    root = site.lxcpath / "ml-8" / "rootfs" / "root"
    assert (sorted(path.name for path in root.iterdir()), site.can_open()) == ([".ssh"], OWN)
    assert OTHER_KEY in (root / ".ssh" / "authorized_keys").read_text()
    assert site.claim(key=OTHER_KEY)["changed"] is False, "the claim says what it runs now"


@pytest.mark.parametrize("key", ["hello", KEY.split(" j", maxsplit=1)[0][:-3], f"{KEY}\n" * 1000])
def test_a_key_that_is_none_costs_nothing(site, key):
    """Lost: what is in the root, and the only way in, by a key that was pasted without its end."""
    site.claim()
    site.up()
    data = site.lxcpath / "ml-8" / "rootfs" / "root" / "data"
    data.write_text("work")
    with pytest.raises(BadInput, match="ssh_public_key: "):
        site.do(lifecycle.rebuilt, ssh_public_key=key)
    assert (data.read_text(), site.container().running) == ("work", True)
    assert site.claim()["changed"] is False, "the claim says what it runs now"


def test_what_is_taken_away_by_hand_is_put_back(site):
    """A key, a line of the configuration, a GPU's node, the container: the next run says so and restores it."""
    site.claim()
    site.up()
    top = site.lxcpath / "ml-8"
    (top / "rootfs" / "root" / ".ssh" / "authorized_keys").write_text("# nobody\n")
    (top / "config").write_text((top / "config").read_text().replace("10.0.81.10/24", "10.0.81.99/24"))
    assert texts(site.up(check=True)) == ["would be put back: configuration, ssh key"]
    assert texts(site.up()) == ["put back: configuration, ssh key", ALREADY]
    assert KEY in (top / "rootfs" / "root" / ".ssh" / "authorized_keys").read_text()
    assert "10.0.81.10/24" in (top / "config").read_text()
    os.unlink(f"/proc/{site.container().init_pid}/root/dev/nvidia{MINORS[OWN[0]]}")
    again = site.up()
    assert (again["changed"], len(again["lines"]), texts(again)[-1]) == (True, 2, ALREADY), again
    assert site.can_open() == OWN
    assert site.up()["changed"] is False
    site.container().stop()
    shutil.rmtree(top, ignore_errors=True)  # its root is mounted, and stays
    assert not site.container().defined
    assert "config: is gone, and ml-8 has run: nothing is made in its place" in site.up()["msg"]
    assert site.do(lifecycle.rebuilt, fresh=True)["instances"][0]["state"] == "running"
    assert site.can_open() == OWN


def test_what_never_ran_is_taken_back(site, tmp_path):
    """An image without sshd, and one for another machine: the error says why, and nothing stays claimed."""
    mute = tmp_path / "mute"
    shutil.copytree(site.image, mute, symlinks=True)
    (mute / "root" / "usr" / "sbin" / "sshd").unlink()
    site.claim(image=site.take_in(mute, "mute"))
    failed = site.up(timeout=30.0)
    assert "ssh did not answer at 10.0.81.10 within 30 s (ml-8 was taken back, nothing of it is left)" in failed["msg"]
    assert site.nothing_is_left()
    (mute / "image.json").write_text('{"arch": "tilepro64"}')
    with pytest.raises(NoneFree, match="image other is for tilepro64, this host is"):
        site.claim(image=site.take_in(mute, "other"))
    assert site.nothing_is_left()


def test_a_timeout_that_is_over_before_the_start_says_so(site, monkeypatch):
    """Lost: the reason: "lxc-start did not end within 0 s" sends one to the hooks of a container never started."""
    site.claim()
    start = ContainerWork.start

    def late(work):
        work.deadline = Deadline(0.0)
        start(work)

    monkeypatch.setattr(ContainerWork, "start", late)
    said = "the 0 s of its timeout were over before it could be started (ml-8 was taken back, nothing of it is left)"
    assert said in site.up()["msg"]
    assert site.nothing_is_left()


def test_what_was_given_back_since_it_was_claimed_is_not_claimed_anew(site, monkeypatch):
    """Lost: GPUs that nobody uses, claimed by a play that then says it was given back."""
    monkeypatch.setattr(compute_host, "Host", partial(Host, places=Places(site.machine.paths, site.here)))
    given = {name: option.get("default") for name, option in instance.SPEC.options.items()}
    given.update(kind="container", config=str(site.config), instance="ml-8", owner="jo", flavor=CG1, ssh_public_key=KEY)
    (claim,) = instance.work(dict(given, state="present"), False)["instances"]
    site.do(lifecycle.absent)
    with pytest.raises(Refused, match="no such instance"):
        instance.work(dict(given, created=[claim["created"]]), False)
    assert site.nothing_is_left()


def test_what_is_given_back_as_surplus_may_run_meanwhile(site):
    """Lost: a container in which somebody is at work, to the other play of its owner that got too little."""
    site.claim()
    site.up()
    refused = site.do(lifecycle.absent, never_ran=True)
    assert "ml-8: runs, or ran, since it was looked at: nothing of it is taken back" in refused["msg"]
    assert (site.container().running, site.can_open()) == (True, OWN)
    site.do(lifecycle.absent)
    site.claim()
    assert site.do(lifecycle.absent, never_ran=True)["changed"] is True
    assert site.nothing_is_left()


def test_what_ran_before_keeps_its_claim(site):
    """A container that does not come back after a reboot is its user's to look into, with data and GPUs."""
    site.claim()
    site.up()
    (site.lxcpath / "ml-8" / "rootfs" / "usr" / "sbin" / "sshd").unlink()
    failed = site.do(lifecycle.rebooted, timeout=30.0)
    assert failed["failed"], failed
    (seen,) = site.info()["instances"]
    assert (seen["state"], seen["gpus"]) == ("error", OWN)
    assert "ssh did not answer" in seen["note"]
    assert site.do(lifecycle.absent)["changed"] is True
    assert site.nothing_is_left()


def killed(work, seconds):
    """Do `work()` in a process that is killed after some seconds, with whatever it started; whether it was in time."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    ended, _status = os.waitpid(child, os.WNOHANG)
    if ended:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.long)])
def test_killed_anywhere_and_run_again_it_converges(site, kills):
    """A play that is killed leaves its module half way: the next run goes on, no GPU is lost and none is two's."""
    dice = random.Random(kills)
    for _turn in range(kills):
        killed(lambda: (site.claim(), site.up()), dice.uniform(0.02, 1.2))
        if dice.random() < 0.5:
            killed(lambda: site.do(lifecycle.absent), dice.uniform(0.01, 0.3))
        if dice.random() < 0.5:
            site.claim()
            done = site.up()
            assert done["instances"][0]["state"] == "running", done
            assert site.can_open() == OWN
            assert site.up()["changed"] is False
        holders = [gpu["holder"] for gpu in site.info()["gpus"]]
        assert holders in ([None] * 4, ["ml-8", "ml-8", None, None])
    site.do(lifecycle.absent)
    assert site.nothing_is_left()


def test_records_follow_what_is_true(site, monkeypatch):
    """A container that was ended by hand shows as running for ever, and one whose lease is over keeps its GPUs."""
    site.claim(lease_hours=1)

    def reconcile(check=False):
        with site.host(create=not check) as host:
            (seen,) = reconciliation.reconcile(host, Change(check), 5.0)["instances"]
        return [(one["found"], one["done"]) for one in seen["found"]], site.info()["instances"][0]["state"]

    flavor = site.info()["instances"][0]["flavor"]
    asked = f"-e instance=ml-8 -e flavor={flavor} -e image=box"
    again = f"ansible-playbook hetero.compute.provision_instance {asked} makes it"
    end = "ansible-playbook hetero.compute.terminate_instance -e instance=ml-8 ends it"
    assert reconcile()[0] == [(f"claimed, and its container not made yet: {again}, {end}", None)]
    site.up()
    assert reconcile() == ([], "running")
    with monkeypatch.context() as silent:
        silent.setattr(reconciliation, "_whose_key", lambda claim: reconciliation.SILENT)
        (((found, done),), state) = reconcile()
        assert (done, state) == (None, "running")
        assert found.startswith("recorded as running, it runs and does not answer ssh: not touched: its sshd ended, or")
        assert "see lxc-attach -P " in found
        assert " -n ml-8 on its host; once its tenant agrees, ansible-playbook hetero.compute.reboot_instance" in found
    with monkeypatch.context() as other:
        other.setattr(reconciliation, "_whose_key", lambda claim: reconciliation.OTHER_KEY)
        (((found, done),), state) = reconcile()
        assert (done, state) == (None, "running")
        assert ": see lxc-attach -P " in found
        assert "ansible-playbook hetero.compute.rebuild_instance -e instance=ml-8 -e fresh=true makes it anew" in found
    site.container().stop()
    start = "ansible-playbook hetero.compute.start_instance -e instance=ml-8"
    found = [("recorded as running, it does not run", f"recorded as stopped ({start} brings it up)")]
    assert reconcile(check=True) == (found, "running")
    assert reconcile()[1] == "stopped"
    assert reconcile() == ([], "stopped")
    said = []
    with site.host() as host:
        assert reap.reap(host, said.append)
        assert (said, len(site.info()["instances"])) == ([], 1)
        host.store.put("ml-8", expires=time.time() - 120)
        result = lifecycle.stopped(host, "ml-8", lifecycle.Options(), Change(True))
        assert any("its lease ended 20" in line["text"] for line in result["lines"])
        assert reap.reap(host, said.append)
        (remembered,) = information(host, "ml-8")["ended"]
    assert (remembered["instance"], remembered["owner"]) == ("ml-8", "jo")
    assert said == ["ml-8 of jo: its lease is over since 2 min; ended, its devices are free"]
    assert site.nothing_is_left()


@pytest.mark.parametrize("ended", [True, False])
def test_one_that_another_turn_has_ended_by_then_is_no_failure(site, monkeypatch, ended):
    """Lost: a quiet journal: a turn by hand beside the timer's told that an instance could not be ended, with rc 1. Or
    one that was claimed anew since, whose lease is another.
    """
    site.claim()
    said, read = [], Work.read

    def quicker(work):
        work.host.store.release("ml-8")
        if not ended:
            site.claim()
        read(work)

    with site.host() as host:
        host.store.put("ml-8", expires=time.time() - 120)
        monkeypatch.setattr(Work, "read", quicker)
        assert reap.reap(host, said.append)
        assert (host.store.claim_of("ml-8") is None) == ended
    assert said == ["ml-8 of jo: its lease is over since 2 min; ended by another meanwhile"]


def test_a_container_starts_only_where_it_is_kept_to_its_address(site):
    """Lost: a neighbour's address, to a container of a host whose rules somebody flushed."""
    site.claim()
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    failed = site.up()
    assert "its address is not pinned on the bridge: on the host, systemctl restart hetero-bridge" in failed["msg"]
    assert site.nothing_is_left()


def test_a_container_that_was_made_before_there_were_pins_gets_its_port_back(site):
    """Lost: what holds for new containers would never hold for those that are there."""
    site.claim()
    site.up()
    config = Path(site.container().config_file)
    old = "lxc.net.0.veth.pair", "lxc.net.0.hwaddr", "lxc.hook.pre-start = /bin/sh -c 'nft"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith(old)))
    assert "put back: configuration" in texts(site.up())
    site.do(lifecycle.rebooted)
    ports = subprocess.run(["ip", "-br", "link"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert f"{pinning.port('lxc', '10.0.81.10')}@" in ports


def test_the_module_claims_a_container_and_does_its_verb(site, monkeypatch):
    """If the module claimed something else than a container, all that is shown of these would be nobody's to use."""
    monkeypatch.setattr(compute_host, "Host", partial(Host, places=Places(site.machine.paths, site.here)))
    given = {name: option.get("default") for name, option in instance.SPEC.options.items()}
    given.update(kind="container", config=str(site.config), instance="ml-8", timeout=60.0)
    asked = dict(given, owner="jo", flavor=CG1, ssh_public_key=KEY)
    planned = instance.work(asked, True)
    text = f"root would be made from {IMAGE}, container started, its GPUs opened"
    assert planned["lines"][-1]["text"] == text
    assert site.info()["instances"] == []
    (one,) = instance.work(asked, False)["instances"]
    assert (one["kind"], one["state"], one["gpus"], one["owner"]) == ("lxc", "running", OWN, "jo")
    assert instance.work(asked, False)["changed"] is False
    assert instance.work(dict(given, state="absent"), False)["changed"] is True
    assert site.nothing_is_left()


def test_a_containers_root_has_the_data_for_cloud_init(site, monkeypatch):
    """Lost: a first boot that does what was asked; or what is in the root, to data that its image does nothing with."""
    monkeypatch.setattr(compute_host, "Host", partial(Host, places=Places(site.machine.paths, site.here)))
    given = {name: option.get("default") for name, option in instance.SPEC.options.items()}
    given.update(kind="container", config=str(site.config), instance="ml-8", timeout=60.0)
    asked = dict(given, owner="jo", flavor=CG1, ssh_public_key=KEY, user_data=USER_DATA)
    for wrong, why in ((USER_DATA, "has no cloud-init"), ("hunter2", "does not begin as data for cloud-init do")):
        with pytest.raises(BadInput, match=why):
            instance.work(dict(asked, user_data=wrong), False)
        assert site.info()["instances"] == [], "nothing was claimed"
    site.claim()
    first = site.up(user_data=USER_DATA)
    assert "user_data is there for cloud-init" in texts(first)
    seed = site.lxcpath / "ml-8" / "rootfs" / "var" / "lib" / "cloud" / "seed" / "nocloud"
    assert (seed / "user-data").read_text() == USER_DATA
    assert stat.S_IMODE((seed / "user-data").stat().st_mode) == 0o600
    again = site.up(user_data=USER_DATA)
    assert (again["changed"], texts(again)[0]) == (False, SEEDED)
    with pytest.raises(BadInput, match="does not begin"):
        site.do(lifecycle.rebuilt, user_data="hunter2", fresh=True)
    refused = site.do(lifecycle.rebuilt, user_data=USER_DATA, fresh=True)
    assert "has no cloud-init" in refused["msg"]
    assert (seed / "user-data").exists(), "what is in it stays"
    assert "hunter2" not in str([first, again, refused, site.info()])
