# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that move to another host. If these fail, a tenant's disk is lost on the way, or runs twice.

Tests compute_host/departures.py, compute_host/arrivals.py, compute_host/move_step.py, compute_host/moved_roots.py,
instances/kinds/host_moves.py.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import host_moves
from ansible_collections.hetero.compute.tests.turns import todays
from ansible_collections.hetero.compute.tests.unit.devices.pci.conftest import Host as Devices
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, NETWORK, OTHER, Virt
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1, Site
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_more_disks import DATA
from ansible_collections.hetero.compute.tests.unit.instances.moves import Mover
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


def another(root, image, name, first):
    """One more KVM host, in a folder; its addresses begin with number `first`."""
    programs = root / "programs"
    programs.mkdir(parents=True)
    devices = Devices(root)
    for program in ("modprobe", "udevadm", "systemctl", "nft"):
        (programs / program).write_text("#!/bin/sh\n")
        (programs / program).chmod(0o755)
    os.makedirs(os.path.dirname(devices.paths.state_db))
    virt = Virt(devices)
    virt.add(OTHER, "bochs-drm", group=5)
    virt.add(CARD, "pci-stub", group=6)
    made = Site(virt, image)
    made.configure(name=name, addresses=[f"{NETWORK}.{first}", f"{NETWORK}.{first + 2}"])
    made.path = f"{programs}:{os.environ['PATH']}"
    return made


@pytest.fixture
def two(site, image, tmp_path, monkeypatch):
    """(a host kvm1, a host kvm2, a function that is a context in which one of them is this machine)."""
    site.configure(name="kvm1")
    site.path = os.environ["PATH"]
    second = another(tmp_path / "second", image, "kvm2", 20)

    @contextmanager
    def here(one):
        with monkeypatch.context() as patch:
            patch.setenv("PATH", one.path)
            patch.setattr(sysfs, "put", one.virt.host.put)
            yield one

    @contextmanager
    def opened(one):
        with here(one), one.host() as host:
            yield host

    yield site, second, here, opened
    # also of further hosts of a test; of the first one its own fixture sees to that
    for pid in tmp_path.glob("*/guests/*/pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def win(two):
    """win runs on kvm1 with its card, and has something of its own on its disk."""
    old, new, here, opened = two
    with here(old):
        assert not old.provision("win", lease_hours=5).get("failed")
    return Mover(opened, old, new, "win")


def disk(site):
    return site.folder / "guests-files/win/disk.raw"


def test_a_guest_runs_on_the_other_host_as_the_same_machine(win, two):
    """Lost: what a tenant has on its disk, its key, its lease, or the card that its flavor names."""
    old, new, here, _opened = two
    before = win.claim(old)
    whole = disk(old).read_bytes()
    win.copied()
    assert (win.state(old), win.state(new)) == ("leaving", "arriving")
    assert disk(new).read_bytes() == whole
    assert disk(new).stat().st_mode & 0o777 == 0o600
    with here(old):
        assert not old.virt.domain("win").active
    done = win.started()
    assert done["instances"][0]["state"] == "running"
    win.step(old, "gone")
    after = win.claim(new)
    stays = ("instance", "request", "owner", "flavor", "image", "image_hash", "ssh_public_key", "created", "expires")
    assert [getattr(after, name) for name in (*stays, "host_key")] == [
        getattr(before, name) for name in (*stays, "host_key")
    ]
    assert (before.address, after.address) == (f"{NETWORK}.10", f"{NETWORK}.20")
    assert win.claim(old) is None
    assert (old.files("win"), old.table(), new.table()) == ([], {}, {CARD: "domain:win"})
    assert (old.drivers()[CARD], new.drivers()[CARD]) == ("pci-stub", "vfio-pci")
    with here(new):
        assert not new.provision("win", lease_hours=5)["changed"], "asked for again, it was changed"
        assert not new.do("absent", "win").get("failed")
    assert new.files("win") == []


def test_a_move_that_was_ended_changes_nothing_when_it_is_run_again(win, two):
    """Lost: the time of a tenant whose instance boots because somebody ran a play twice."""
    win.all()
    booted = len(two[1].virt.said())
    win.started()
    win.step(two[0], "gone")
    assert [line for line in two[1].virt.said()[booted:] if line.startswith(("start", "destroy"))] == []


def test_a_stopped_one_moves_and_its_card_is_known(win, two):
    """Lost: a move of an instance that is off; or it is said to have run, and starts when the move is taken back."""
    old, _new, here, _opened = two
    with here(old):
        old.do("stopped", "win")
    came = win.step(old, "described")["came"]
    assert (came["ran"], came["kinds"]) == (False, ["10de:11bf"])
    assert sorted(came["files"]) == ["disk.raw", "initrd", "kernel"]
    win.copied()
    win.step(win.new, "given_up")
    assert win.step(old, "back") == {"ran": False}
    assert win.state(old) == "stopped"


def test_no_other_verb_works_on_a_half(win, two):
    """Lost: the disk that is being copied, or a second life beside the first one."""
    old, new, here, _opened = two
    win.copied()
    for site, told in ((old, "moves to new"), (new, "moves from old")):
        with here(site):
            for verb in ("running", "rebooted", "stopped", "rebuilt", "extended"):
                more = {"lease_hours": 1.0} if verb == "extended" else {}
                failed = site.do(verb, "win", **more)
                goes_on = "ansible-playbook hetero.compute.migrate_instance -e instance=win goes on"
                assert f"win: {told}: {goes_on}" in failed["msg"], (verb, failed)
            assert told in site.do("absent", "win", never_ran=True)["msg"]
    assert (win.state(old), win.state(new)) == ("leaving", "arriving")
    with here(old):
        assert not old.virt.domain("win").active


def test_both_halves_end_each_on_its_host(win, two):
    """Lost: a card and an address, for good, of an instance whose lease ended, or which somebody ended, on its way."""
    old, new, here, _opened = two
    win.copied()
    for site in (old, new):
        with here(site):
            assert not site.do("absent", "win", over=win.claim(site).expires + 1).get("failed")
        assert (win.claim(site), site.files("win"), site.table()) == (None, [], {})
        assert site.drivers()[CARD] == "pci-stub"


def test_given_up_before_it_was_started_it_runs_where_it_ran(win, two):
    """Lost: an instance that is off on both hosts because one of them had no room."""
    old, new, here, _opened = two
    win.copied()
    win.step(new, "given_up")
    assert (win.claim(new), new.files("win"), new.table()) == (None, [], {})
    assert win.step(old, "back") == {"ran": True}
    with here(old):
        assert old.do("running", "win")["instances"][0]["state"] == "running"


def test_a_lease_that_was_extended_before_it_left_keeps_its_new_place_too(win, two):
    """Lost: a move of hours, whose claim on the new host ends in its middle with the lease of before."""
    old, new, here, _opened = two
    win.step(new, "arriving", came=win.step(old, "described")["came"])
    with here(old):
        assert not old.do("extended", "win", lease_hours=50).get("failed")
    came = win.step(old, "leaving")["came"]
    win.step(new, "begun", came=came)
    assert win.claim(new).expires == win.claim(old).expires == came["expires"]


def test_what_was_started_is_given_up_by_an_operators_word_alone(win, two):
    """Lost: what a tenant wrote on the new host, to a play that failed a second later."""
    old, new, _here, _opened = two
    win.copied()
    win.started()
    with pytest.raises(Refused, match="its tenant may have written to its root since: nothing of it is removed"):
        win.step(new, "given_up")
    with pytest.raises(Refused, match="may have written"):
        win.step(new, "written", piece=dict(file="disk.raw"))
    assert win.state(new) == "running"
    win.step(new, "given_up", force=True)
    assert (win.claim(new), win.step(old, "back")) == (None, {"ran": True})


def test_one_that_was_killed_as_it_starts_may_have_run(win, two, monkeypatch):
    """Lost: what a tenant wrote on the new host, where the play was killed before it saw that the guest had started."""
    win.copied()

    def killed(work):
        raise KeyboardInterrupt

    monkeypatch.setattr(GuestWork, "start", killed)
    with pytest.raises(KeyboardInterrupt):
        win.started()
    assert win.state(two[1]) == "starting"
    with pytest.raises(Refused, match="may have written to its root since: nothing of it is removed"):
        win.step(two[1], "given_up")


def test_one_whose_end_was_cut_off_on_its_new_host_is_not_made_anew_there(win, two, monkeypatch):
    """Lost: the tenant's disk: an empty one was made of the image in its place, and started, and then the former one
    removed, as of a move that is over. The end goes on, or is taken back, and the former disk is there.
    """
    old, new, here, _opened = two
    win.copied()

    def killed(work):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "give_back", killed)
        with pytest.raises(KeyboardInterrupt):
            win.step(new, "given_up")
    assert (win.state(new), new.files("win")) == ("ending", [])
    end = "ansible-playbook hetero.compute.terminate_instance -e instance=win ends all of it"
    said = f"win: its end was begun on kvm2: {end}"
    with pytest.raises(AssertionError, match=said):
        win.started()
    came = win.step(old, "described")["came"]
    for step in ("arriving", "begun"):
        with pytest.raises(Refused, match=said):
            win.step(new, step, came=came)
    assert (win.state(new), new.files("win")) == ("ending", [])
    win.step(new, "given_up")
    assert (win.claim(new), win.step(old, "back")) == (None, {"ran": True})
    with here(old):
        assert not old.do("running", "win").get("failed")


def test_a_former_root_is_removed_of_one_that_left_alone(win, two):
    """Lost: the only root of an instance that is running where a step thinks that it has left."""
    with pytest.raises(Refused, match="is running here, and does not move: nothing of it is removed"):
        win.step(two[0], "gone")
    with pytest.raises(Refused, match="is not off, or does not leave this host any more"):
        win.step(two[0], "read", piece=dict(file="disk.raw", number=0))
    assert win.state(two[0]) == "running"


def test_a_copy_that_is_not_its_source_is_not_taken(win, two):
    """Lost: a tenant's data, where a disk or a network breaks them; the first root is as it was."""
    old, new, _here, _opened = two
    came = win.step(old, "described")["came"]
    win.step(new, "arriving", came=came)
    came = win.step(old, "leaving")["came"]
    win.step(new, "begun", came=came)
    with pytest.raises(HeteroError, match="is not the same as its source"):
        win.step(new, "taken", came=came, digests=win.step(old, "digested")["digests"])
    assert not win.claim(new).container


def test_what_would_stay_is_refused_before_anything_is_switched(win, two):
    """Lost: a data disk, or a card that was given by hand, which the instance would miss on the other host."""
    old, _new, here, _opened = two
    data = old.folder / "data.raw"
    data.write_bytes(b"data")
    with here(old):
        libvirt = Libvirt(Deadline(60))
        domain = libvirt.domain("win").xml(live=False)
        domain.find("devices").append(ElementTree.fromstring(DATA.format(path=data, target="sda")))
        libvirt.define(ElementTree.tostring(domain, encoding="unicode"))
    with pytest.raises(Refused, match=f"has further disks \\({data}\\), which stay on their host"):
        win.step(old, "described")
    with pytest.raises(Refused, match="has further disks"):
        win.step(old, "leaving")
    assert win.state(old) == "running"


def test_a_host_without_its_image_or_its_card_is_refused(win, two):
    """Lost: time, and an instance without its card; the claim is as one that is asked for there."""
    old, new, here, _opened = two
    came = win.step(old, "described")["came"]
    with pytest.raises(NoneFree, match="image other"):
        win.step(new, "arriving", came=dict(came, image="other"))
    with pytest.raises(Refused, match="gets 10de:11bf, and has 1002:aaaa"):
        win.step(new, "arriving", came=dict(came, kinds=["1002:aaaa"]))
    with pytest.raises(HeteroError, match=r"has room for .* MiB of the copy"):
        win.step(new, "arriving", came=dict(came, bytes=1 << 60))
    with here(new):
        new.provision("other")
    with pytest.raises(NoneFree):
        win.step(new, "arriving", came=came)
    assert (win.claim(new), new.table()) == (None, {CARD: "domain:other"})


def test_a_dry_run_claims_and_stops_nothing(win, two):
    """Lost: what a dry run would do, and that it did nothing."""
    old, new, _here, _opened = two
    came = win.step(old, "described", check=True)["came"]
    assert "kvm2 chosen" in str(win.step(new, "arriving", check=True, came=came)["lines"])
    assert "would be stopped, and kept off" in str(win.step(old, "leaving", check=True)["lines"])
    assert (win.state(old), win.claim(new)) == ("running", None)


def test_reconcile_leaves_both_halves_alone(win, two):
    """Lost: the state that keeps an instance off, "mended" to one that anybody starts."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change

    win.copied()
    for site, told in ((win.old, "moves to new"), (win.new, "moves from old")):
        with win.at(site) as host:
            (look,) = reconcile(host, Change(), 5.0)["instances"]
        assert [one["done"] for one in look["found"]] == [None]
        assert told in look["found"][0]["found"]
    assert (win.state(win.old), win.state(win.new)) == ("leaving", "arriving")


@pytest.mark.parametrize("file", ["../../etc/shadow", "domain.xml", "", None, 7])
def test_a_host_that_lies_names_no_other_file(win, file):
    """Lost: any file of the other host's, to root of one host."""
    came = win.step(win.old, "described")["came"]
    win.step(win.new, "arriving", came=came)
    with pytest.raises(HeteroError, match=r"give one of disk\.raw, kernel, initrd"):
        win.step(win.new, "begun", came=dict(came, files={file: 10}))
    win.step(win.old, "leaving")
    with pytest.raises(HeteroError, match=r"give one of disk\.raw, kernel, initrd"):
        win.step(win.old, "read", piece=dict(file=file, number=0))


def test_an_answer_that_cannot_be_read_is_an_error_with_a_name(win, two, monkeypatch):
    """Lost: the reason of a failure, in a traceback, where the other host is of another release."""
    old, new, here, _opened = two
    params = dict.fromkeys((*host_moves.PIECE, "run", "seen", "other", "has", "digests", "host_key", "departure"))
    params.update(instance="win", created=win.created, owner=None, step="arriving", other="old", force=False)
    params.update(came={"instance": "win"}, timeout=5.0, soft_timeout=5.0, config=str(new.config))
    with here(new), pytest.raises(HeteroError, match="pass on what the other host answered"):
        host_moves.work(params, False)


def killed(points, at, work):
    """`work` in a process of its own, killed before its write number `at`; whether it was."""
    points.reset(at)
    child = os.fork()
    if child == 0:
        try:
            points.arm()
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.dear
@pytest.mark.parametrize("at", todays(list(range(1, 400, 3)), 17))
def test_killed_anywhere_it_goes_on(win, two, at):
    """Lost: an instance whose controller, or one of whose hosts, dies in the middle of its move."""
    old, new, here, _opened = two
    whole = disk(old).read_bytes()
    killed(Points(), at, win.all)
    running = [site for site in (old, new) if _active(here, site)]
    assert len(running) < 2, "it runs twice"
    win.all()
    assert (win.claim(old), win.state(new)) == (None, "running")
    assert disk(new).read_bytes() == whole
    assert (old.files("win"), old.table(), new.table()) == ([], {}, {CARD: "domain:win"})


def _active(here, site):
    with here(site):
        domain = site.virt.domain("win")
        return domain.defined and domain.active
