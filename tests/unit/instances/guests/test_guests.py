# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of instances in KVM guests: claimed with their PCI devices, made, started, reached, and given back clean.

Tests compute_host/guest.py, compute_host/host.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import time
from functools import partial
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import has_errors
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests, hostdev
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import (
    CALL_TIME,
    Libvirt,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import compute_host
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.plugins.modules import instance
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.reconcile_table import reconcile_table
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, NETWORK, OTHER
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import ALIASES, IMAGE, KG1


def flavor(**more):
    return dict(KG1, extra_specs=dict(KG1["extra_specs"], **more))


def test_a_guest_with_a_device_from_claim_to_end(site):
    """The whole of it: what a person gets by asking for an instance, and what is left when it is given back."""
    result = site.provision("ml-9")
    one = result["instances"][0]
    assert (one["state"], one["kind"], one["ip"], one["devices"]) == ("running", "kvm", f"{NETWORK}.10", [CARD])
    assert [line["text"] for line in result["lines"]] == [
        "wants kg1.large: 1 × a1, kvm1 chosen",
        f"disk ready from {IMAGE}, {NETWORK}.10",
        f"guest started with {CARD}",
        "ssh answers",
    ]
    assert site.drivers() == {OTHER: "bochs-drm", CARD: "vfio-pci"}
    assert site.table() == {CARD: "domain:ml-9"}
    again = site.provision("ml-9")
    assert not again["changed"]
    assert again["diff"] == []
    gone = site.do("absent", "ml-9")
    assert gone["lines"][-1]["text"] == f"guest and disk removed; free again: {CARD}"
    assert site.drivers() == {OTHER: "bochs-drm", CARD: "pci-stub"}
    assert site.table() == {}
    assert site.files("ml-9") == []
    assert not site.virt.domain("ml-9").defined
    assert not site.do("absent", "ml-9")["changed"]


def test_what_the_host_shows(site):
    """Nobody could see who has a card, or why none is free."""
    site.provision("ml-9")
    info = site.info()
    assert [(one["address"], one["arch"], one["instance"]) for one in info["devices"]] == [
        (OTHER, "a1", None),
        (CARD, "a1", "ml-9"),
    ]
    assert "is on bochs-drm, not kept for guests" in info["devices"][0]["unsupported"]
    assert info["instances"][0]["gpus"] == [CARD]
    assert info["claims"][0]["console"].endswith("guests-files/ml-9/console.log")
    assert (info["hypervisor"], info["capacity"]["memory_mb"]) == ("KVM", {"total": 2048, "free": 1536})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (dict(flavor=flavor(**{"pci_passthrough:alias": "a1:2"})), "2 × a1 wanted: 0000:85:00.0 is on bochs-drm"),
        (dict(flavor=flavor(**{"pci_passthrough:alias": "b7:1"})), r"has no alias b7 \(it has a1\)"),
        (dict(flavor=flavor(hypervisor="s== LXC")), "hypervisor KVM does not satisfy 's== LXC'"),
        (dict(flavor=dict(KG1, memory_mb=4096)), "memory_mb 2048 < 4096"),
        (dict(devices=("85:00.0",)), "is on bochs-drm, not kept for guests"),
        (dict(flavor=dict(KG1, extra_specs={"hypervisor": "s== KVM", "gpus": "= 1"})), "gpus 0 does not satisfy"),
    ],
)
def test_what_a_host_cannot_serve_is_said_and_claims_nothing(site, more, why):
    """Half a claim would keep a card from everybody; a refusal without its reason sends people searching."""
    with pytest.raises(NoneFree, match=why) as none:
        site.provision("ml-9", **more)
    assert list(none.value.facts["rejected"]) == ["kvm1"]
    assert site.table() == {}
    assert site.info()["instances"] == []


def test_devices_that_are_named_are_the_ones_given(site):
    """A person who knows which slot is cabled must get that one, and not hear of it afterwards."""
    site.virt.add("0000:87:00.0", "vfio-pci", group=7)
    assert site.provision("ml-9", devices=("87:00.0",))["instances"][0]["devices"] == ["0000:87:00.0"]
    with pytest.raises(BadInput, match="names 2 devices, and the flavor asks for 1"):
        site.provision("ml-10", devices=("86:00.0", "85:00.0"))
    site.do("absent", "ml-9")
    assert site.virt.host.driver("0000:87:00.0") == "vfio-pci"  # as it was


def test_a_device_that_a_container_has_is_not_given(site):
    """One allocation table: a GPU is never in a container and in a guest."""
    row = Allocation(CARD, "/var/lib/lxc/ml-7#1", None, False, ATTACHED, 1.0, GpuRequest(count=1))
    with site.virt.store() as store:
        store.grant(row)
    with pytest.raises(NoneFree, match=f"{CARD} allocated to ml-7 since"):
        site.provision("ml-9")


def test_the_second_guest_is_told_who_has_the_card(site):
    """Of any number of askers one gets it; the others learn from whom they may have it."""
    site.provision("ml-9")
    with pytest.raises(NoneFree, match=f"{CARD} allocated to ml-9 since"):
        site.provision("ml-10")
    with pytest.raises(Refused, match="ml-9: belongs to alice"):
        site.provision("ml-9", owner="bob")


def test_all_functions_of_a_card_go_together_and_come_back(site):
    """A sound function that stays with the host keeps the group from the guest."""
    site.virt.add("0000:01:00.0", "pci-stub", group=9)
    site.virt.host.add("0000:01:00.1", "10de:0e0a", "snd_hda_intel", group=9)
    with pytest.raises(NoneFree, match=r"its function 0000:01:00.1 is on snd_hda_intel"):
        site.provision("ml-9", devices=("01:00.0",))
    (site.virt.host.folder("0000:01:00.1") / "driver").unlink()
    site.virt.host.bind("0000:01:00.1", "pci-stub")
    one = site.provision("ml-9", devices=("01:00.0",))["instances"][0]
    assert one["devices"] == ["0000:01:00.0", "0000:01:00.1"]
    site.do("absent", "ml-9")
    assert {site.virt.host.driver(f"0000:01:00.{number}") for number in (0, 1)} == {"pci-stub"}


def test_stopped_rebooted_rebuilt_and_extended(site):
    """The verbs that people know of boards and containers do the same to a guest; its card stays its own."""
    site.provision("ml-9")
    key = site.info()["instances"][0]["host_key"]
    assert site.do("stopped", "ml-9")["lines"][-1]["text"] == "guest stopped"
    assert site.info()["instances"][0]["state"] == "stopped"
    assert site.drivers()[CARD] == "vfio-pci"  # the host's driver never touches what a guest has had
    assert site.table() == {CARD: "domain:ml-9"}
    assert not site.do("stopped", "ml-9")["changed"]
    site.do("running", "ml-9")
    (site.folder / "deaf").touch()
    said = site.do("rebooted", "ml-9", soft_timeout=1)["lines"]
    assert said[0]["text"] == "guest did not end within 1 s: stopped by force"
    site.do("rebuilt", "ml-9", fresh=True)
    info = site.info()["instances"][0]
    assert (info["state"], info["gpus"]) == ("running", [CARD])
    assert info["host_key"] != key
    assert site.do("extended", "ml-9", lease_hours=3)["instances"][0]["until"].endswith("3 h left")


@pytest.mark.parametrize("verb", ["absent", "stopped", "rebooted", "rebuilt", "extended"])
def test_a_guest_that_was_claimed_anew_since_it_was_looked_up_is_left(site, verb):
    """Lost: the guest of whoever was given the name, and asked for nothing."""

    def look():
        with site.host(create=False) as host:
            return host.store.claim_of("ml-9"), site.virt.said()

    site.provision("ml-9")
    before = look()
    refused = site.do(verb, "ml-9", created=(before[0].created - 1,), fresh=True, lease_hours=3)
    assert "ml-9: was given back meanwhile, and claimed anew by alice" in refused["msg"]
    assert look() == before
    assert not site.do(verb, "ml-9", created=(before[0].created,), lease_hours=3).get("failed")


def test_a_disk_with_errors_is_said_and_left_to_the_guest(site):
    """Lost: a guest that takes no writes, nobody is told why; or the host, to a file system that a tenant forged."""
    site.provision("ml-9")
    disk = str(site.folder / "guests-files" / "ml-9" / "disk.raw")
    subprocess.run(["debugfs", "-w", "-R", "set_super_value state 2", disk], check=True, capture_output=True)
    said, runs = site.provision("ml-9")["lines"][1:]
    assert runs["text"] == "already running, ssh answers with its own host key"
    assert "its file system has errors: its own system is to check it" in said["text"]
    assert has_errors(disk)


def test_what_was_taken_away_by_hand_is_put_back(site):
    """A second run mends exactly that: an undefined domain keeps its disk, a detached device comes back."""
    site.provision("ml-9")
    key = site.info()["instances"][0]["host_key"]
    guest = site.virt.domain("ml-9")
    guest.stop()
    guest.undefine()
    result = site.provision("ml-9")
    assert result["changed"]
    assert "put back: domain" in [line["text"] for line in result["lines"]]
    assert site.info()["instances"][0]["host_key"] == key
    guest.stop()
    from_xml = site.virt.detach(guest, CARD)
    assert from_xml["changed"]
    assert site.table() == {CARD: "domain:ml-9"}  # an instance keeps what it claimed
    result = site.provision("ml-9")
    assert f"put back: device {CARD}" in [line["text"] for line in result["lines"]]
    assert site.drivers()[CARD] == "vfio-pci"


def test_a_guest_that_does_not_answer_is_taken_back(site):
    """Nothing of a guest that nobody could ever reach may stay claimed."""
    (site.folder / "mute").touch()
    result = site.provision("ml-9", timeout=30)
    said = f"ssh did not answer at {NETWORK}.10 within 30 s (ml-9 was taken back, nothing of it is left)"
    assert said in result["msg"]
    assert site.drivers()[CARD] == "pci-stub"
    assert (site.table(), site.files("ml-9"), site.virt.domain("ml-9").defined) == ({}, [], False)


def test_a_guest_that_ran_and_does_not_come_up_keeps_its_claim(site):
    """A tenant's disk is never thrown away because a start failed."""
    site.provision("ml-9")
    site.do("stopped", "ml-9")
    site.virt.fail("start", "internal error: process exited while connecting to monitor")
    result = site.do("running", "ml-9")
    assert "virsh start: internal error" in result["msg"]
    assert site.info()["instances"][0]["state"] == "error"
    assert "disk.raw" in site.files("ml-9")
    site.virt.fail("start")
    assert not site.do("running", "ml-9").get("failed")


def test_a_domain_of_that_name_that_is_not_ours_is_never_touched(site):
    """A guest that somebody made by hand must not be replaced by an instance of the same name."""
    site.virt.define("ml-9")
    with pytest.raises(NoneFree, match="there is a domain ml-9 already that is no instance"):
        site.provision("ml-9")
    assert site.virt.said() == ["define /dev/stdin"]


def test_others_use_the_database_while_libvirt_is_asked(site, monkeypatch):
    """Lost: other requests to a host whose libvirt is just starting, which takes a minute where QEMU is slow."""
    asked, answer = [], Libvirt.names

    def names(libvirt):
        with contextlib.closing(sqlite3.connect(site.folder / "var/lib/hetero/host.db", timeout=0)) as others:
            others.execute("BEGIN IMMEDIATE")
        asked.append(libvirt.deadline.seconds)
        return answer(libvirt)

    monkeypatch.setattr(Libvirt, "names", names)
    assert not site.provision("ml-9").get("failed")
    assert asked[0] == CALL_TIME
    assert not site.provision("ml-9")["changed"]
    assert asked.count(CALL_TIME) == 1  # who has its instance waits for nothing


def test_check_mode_claims_and_makes_nothing(site):
    """A dry run says who would get what."""
    result = site.provision("ml-9", check=True)
    assert result["diff"][0]["after"]["devices"] == [CARD]
    assert result["diff"][0]["after"]["address"] == f"{NETWORK}.10"
    assert not (site.folder / "var/lib/hetero/host.db").exists()
    assert site.virt.said() == []


def test_kvm_where_the_processor_has_it_and_emulation_where_not(site):
    """An emulated guest is twenty times slower; one that asks for a processor that is not there does not start."""
    site.provision("ml-9")
    assert site.virt.domain("ml-9").xml(live=False).get("type") == "qemu"
    site.do("absent", "ml-9")
    site.virt.capabilities("<domain type='kvm'/>")
    site.provision("ml-9")
    assert site.virt.domain("ml-9").xml(live=False).get("type") == "kvm"
    site.do("absent", "ml-9")
    site.virt.capabilities()
    site.configure(domain_type="kvm")
    assert "runs no guests of type kvm, only qemu" in site.provision("ml-9")["msg"]


def test_an_alias_without_type_is_no_physical_function(site):
    """As in Nova, whose aliases are copied over: a card with virtual functions is not given away by chance."""
    site.virt.add("0000:87:00.0", "vfio-pci", group=7, sriov_totalvfs="4", sriov_numvfs="0")
    with pytest.raises(NoneFree, match=r"alias a1: 0000:87:00.0 is no 10DE:11bf"):
        site.provision("ml-9", devices=("87:00.0",))
    site.configure(aliases={"a1": dict(ALIASES["a1"], device_type="type-PF")})
    assert site.provision("ml-9")["instances"][0]["devices"] == ["0000:87:00.0"]


def test_the_module_claims_a_guest_and_does_its_verb(site, monkeypatch):
    """If the module claimed something else than a guest, all that is shown of guests here would be nobody's to use."""
    monkeypatch.setattr(compute_host, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    given = {name: option.get("default") for name, option in instance.SPEC.options.items()}
    given.update(kind="guest", config=str(site.config), instance="ml-9", timeout=60)
    asked = dict(given, owner="alice", flavor=KG1, image=IMAGE, ssh_public_key=KEY, devices=[CARD])
    planned = instance.work(asked, True)
    again = instance.work(dict(asked, created=[time.time()]), True)
    assert (len(planned["diff"]), again["diff"], again["changed"]) == (1, [], True), "the claim is shown twice"
    assert planned["lines"][-1]["text"] == f"disk would be made from {IMAGE}, guest started with its devices"
    assert site.info()["instances"] == []
    (one,) = instance.work(asked, False)["instances"]
    assert (one["kind"], one["state"], one["devices"], one["owner"]) == ("kvm", "running", [CARD], "alice")
    assert instance.work(asked, False)["changed"] is False
    assert instance.work(dict(given, state="absent"), False)["changed"] is True
    assert (site.info()["instances"], site.drivers()[CARD]) == ([], "pci-stub")


def test_a_host_of_containers_too_gives_guests_addresses_of_their_own(site):
    """One bridge for both would put guests where no guest is reached; one that says KVM only takes no container."""
    kvm = json.loads(site.config.read_text())["kvm"]
    folders = {key: kvm[key] for key in ("state_folder", "run_folder")}
    lxc = dict(folders, bridge="hetero0", addresses=["10.0.80.10", "10.0.80.10"], lxcpath=str(site.folder / "lxc"))
    site.config.write_text(json.dumps({"lxc": lxc, "kvm": dict(kvm, bridge="hetero1")}))
    assert site.provision("ml-9")["instances"][0]["ip"] == f"{NETWORK}.10"
    assert site.virt.domain("ml-9").xml(live=False).find("devices/interface/source").get("bridge") == "hetero1"
    assert site.info()["hypervisors"] == ["LXC", "KVM"]
    with pytest.raises(NoneFree, match="hypervisor KVM does not satisfy 's== LXC'"):
        site.provision("ml-10", flavor=flavor(hypervisor="s== LXC"))
    site.config.write_text(json.dumps({"lxc": lxc}))
    with pytest.raises(NoneFree, match="hypervisor LXC does not satisfy 's== kvm'"):
        site.provision("ml-10")


def test_a_guest_whose_lease_is_over_is_ended_by_its_own_hosts_timer(site):
    """A lease that nobody ends keeps a card for ever; of two roles' timers, one must not stumble over the other's."""
    site.provision("ml-9", lease_hours=1)
    said = []
    with site.host() as host:
        host.store.put("ml-9", expires=time.time() - 120)
        assert reap.reap(host, said.append, ["lxc"])
        assert (said, len(site.info()["instances"])) == ([], 1)
        assert reap.reap(host, said.append, ["kvm"])
    assert said == ["ml-9 of alice: its lease is over since 2 min; ended, its devices are free"]
    assert (site.info()["instances"], site.drivers()[CARD]) == ([], "pci-stub")


def test_the_others_are_ended_although_one_ends_the_process(site, monkeypatch, capfd):
    """Lost: all lease endings of a host, for ever, by what one tenant left where nobody foresaw it."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    bare = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
    for name in ("ml-7", "ml-8"):
        site.provision(name, flavor=bare, lease_hours=1)
    with site.host() as host:
        for name in ("ml-7", "ml-8"):
            host.store.put(name, expires=time.time() - 120)
    real = guests.remove

    def breaking(name, *rest):
        if name == "ml-7":
            raise RecursionError("maximum recursion depth exceeded")
        return real(name, *rest)

    monkeypatch.setattr(guests, "remove", breaking)
    assert reap.main(["--config", str(site.config)]) == 1
    said = capfd.readouterr()
    assert "ml-7 of alice: its lease is over, and it could not be ended: ml-7: " in said.out
    assert "ml-8 of alice: its lease is over since 2 min; ended" in said.out
    assert "RecursionError" in said.err
    assert [one["instance"] for one in site.info()["instances"]] == ["ml-7"]
    monkeypatch.setattr(guests, "remove", real)
    assert reap.main(["--config", str(site.config), "--kind", "kvm"]) == 0
    assert site.info()["instances"] == []


def test_a_disk_has_its_flavor_s_size_and_is_nobody_else_s_from_its_first_byte(site, monkeypatch):
    """Lost: a tenant's keys, to a local user of the host while the disk is made; all of the disk, to one guest."""
    program = site.folder / "programs/mke2fs"
    look = f'for path; do [ ! -e "$path" ] || stat -c "%a %n" "$path" "$(dirname "$path")"; done >> {site.folder}/modes'
    program.write_text(f'#!/bin/sh\numask 000\n{look}\nexec /sbin/mke2fs "$@"\n')
    program.chmod(0o755)
    before = os.umask(0)
    try:
        site.provision("ml-9", flavor=dict(KG1, local_gb=1))
    finally:
        os.umask(before)
    folder = site.folder / "guests-files/ml-9"
    modes = dict(reversed(line.split()) for line in (site.folder / "modes").read_text().splitlines())
    assert (modes[str(folder / "disk.raw")], modes[str(folder)]) == ("600", "700")
    disk = (folder / "disk.raw").stat()
    assert (disk.st_size, stat.S_IMODE(disk.st_mode)) == (2**30, 0o600)
    assert disk.st_blocks * 512 < 2**28, "sparse"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711, "QEMU's user passes through"


def test_all_of_a_guest_is_on_the_disk_before_it_is_called_whole(site):
    """Lost: by a power cut, a guest's files, while the guest is there and is never made anew."""
    program, folder = site.folder / "programs/sync", site.folder / "guests-files/ml-9"
    early = f'[ -e {folder}/domain.xml ] || [ -e {folder}/root ] || echo "$@" >> {site.folder}/synced'
    program.write_text(f'#!/bin/sh\n{early}\nexec /bin/sync "$@"\n')
    program.chmod(0o755)
    site.provision("ml-9")
    synced = [f"{folder}/{name}" for name in ("disk.raw", "kernel", "initrd")]
    assert (site.folder / "synced").read_text().split() == synced


def test_a_guest_starts_only_where_it_is_kept_to_its_address(site):
    """Lost: a neighbour's address, to a guest of a host whose rules somebody flushed."""
    (site.folder / "flushed").touch()
    result = site.provision("ml-9")
    assert "its address" in result["msg"]
    assert "is not pinned on the bridge" in result["msg"]
    assert site.info()["instances"] == []
    (site.folder / "flushed").unlink()
    site.provision("ml-9")
    interface = site.virt.domain("ml-9").xml(live=False).find("devices/interface")
    assert interface.find("target").get("dev") == pinning.port("kvm", f"{NETWORK}.10")
    assert interface.find("mac").get("address") == pinning.mac(f"{NETWORK}.10")


def test_a_guest_that_was_made_before_there_were_pins_gets_its_port_back(site):
    """Lost: what holds for new guests would never hold for those that are there."""
    site.provision("ml-9")
    domain = site.virt.domain("ml-9").xml(live=False)
    interface = domain.find("devices/interface")
    interface.remove(interface.find("target"))
    interface.find("mac").set("address", "52:54:00:12:34:56")
    Libvirt(Deadline(60)).define(ElementTree.tostring(domain, encoding="unicode"))
    assert site.provision("ml-9", check=True)["changed"]
    result = site.provision("ml-9")
    assert any("put back: port on the bridge" in line["text"] for line in result["lines"])
    interface = site.virt.domain("ml-9").xml(live=False).find("devices/interface")
    assert interface.find("mac").get("address") == pinning.mac(f"{NETWORK}.10")
    assert not site.provision("ml-9")["changed"]


def take(name):
    return f": once nobody wants it there, module libvirt_hostdev with domain {name} and state detached takes it away"


def test_domains_that_have_cards_and_are_no_instances_are_told_and_left_alone(site):
    """A card that a forgotten domain has is missing to everybody, and nothing says why, or what is to be done."""
    site.provision("ml-9")
    assert (domains(site), found(site)["changed"]) == ([], False)
    sums = "1 guest: 1 as recorded, 0 mended, 0 to look at"
    assert reconcile_table([], [dict(found(site), item="kvm1")])[-1] == sums
    hand = site.virt.define("hand")
    site.virt.attach(hand, OTHER)
    allocated = f"hand {OTHER} a domain of no instance would start with it, and it is allocated to that{take('hand')}"
    assert domains(site) == [allocated]
    hand.start()
    with site.virt.store() as store:
        store.free(store.allocations("domain:hand")[0])
    hand.attach(hostdev.xml(CARD), live=False)
    nobodys = f"hand {OTHER} a domain of no instance has it, and it is allocated to nobody{take('hand')}"
    others = f"hand {CARD} a domain of no instance would start with it, and it is allocated to ml-9{take('hand')}"
    assert domains(site) == [nobodys, others]
    lines = reconcile_table([], [dict(found(site), item="kvm1")])
    row = lines.index(next(line for line in lines if line.startswith(f"kvm1 {CARD}")))
    assert " ".join(lines[row : row + 3]).split() == f"kvm1 {CARD} - {others.replace(CARD, '- -')}: not touched".split()
    site.virt.add("0000:87:00.0", "vfio-pci", group=7)
    site.virt.domain("ml-9").attach(hostdev.xml("0000:87:00.0"), live=True)
    besides = "ml-9 0000:87:00.0 its guest has it besides its own, and it is allocated to nobody"
    assert domains(site) == [nobodys, others, besides]
    assert hand.active


def test_what_a_domain_is_to_have_and_has_not_is_told_and_free_when_it_is_no_more(site):
    """A row that outlived its domain keeps a card from everybody; that of one which is there is a person's to end."""
    hand = site.virt.define("hand")
    site.virt.attach(hand, OTHER)
    hand.detach(hostdev.xml(OTHER, True), live=False)
    told = f"hand {OTHER} allocated to a domain that does not have it (libvirt_hostdev, state detached, frees it)"
    assert domains(site) == [told]
    hand.undefine()
    gone = f"hand {OTHER} allocated to a domain that is no more"
    looked = found(site, check=True)
    assert (looked["changed"], site.table()) == (True, {OTHER: "domain:hand"})
    assert [(one["found"], one["done"]) for one in looked["domains"]] == [(gone.split(None, 2)[2], "freed")]
    assert domains(site) == [gone]
    assert (site.table(), domains(site)) == ({}, [])


def found(site, check=False):
    with site.host(not check) as host:
        return reconcile(host, Change(check), 5.0)


def domains(site):
    return [f"{one['domain']} {one['address']} {one['found']}" for one in found(site)["domains"]]


def test_a_guests_disk_has_the_data_for_cloud_init(site):
    """Lost: a first boot that does what was asked; or a secret in it, to an account of the guest."""
    site.provision("ml-9", user_data="#!/bin/sh\necho hunter2\n")
    disk = site.virt.root / "guests-files" / "ml-9" / guests.DISK
    where = "/var/lib/cloud/seed/nocloud/user-data"
    read = ["debugfs", "-R", f"cat {where}", str(disk)]
    assert subprocess.run(read, check=True, capture_output=True, text=True).stdout == "#!/bin/sh\necho hunter2\n"
    said = subprocess.run(["debugfs", "-R", f"stat {where}", str(disk)], check=True, capture_output=True, text=True)
    assert "Mode:  0600" in said.stdout
    assert "User:     0" in said.stdout
