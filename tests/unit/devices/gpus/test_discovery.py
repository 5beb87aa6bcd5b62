# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a machine's GPUs, from trees as the kernel shows them: identity, nodes, health, refusals."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import architectures
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import DRIVER, uuid_of


def test_index_minor_and_address_of_a_gpu_are_three_things(four):
    """Taking one for another hands a container somebody else's GPU."""
    found = four.find()
    told = [(gpu.address, gpu.index, gpu.minor, gpu.uuid, gpu.nodes[0].path) for gpu in found.gpus]
    assert told == [
        ("0000:05:00.0", 0, 2, uuid_of(2), "/dev/nvidia2"),
        ("0000:06:00.0", 1, 0, uuid_of(0), "/dev/nvidia0"),
        ("0000:89:00.0", 2, 3, uuid_of(3), "/dev/nvidia3"),
        ("0000:8a:00.0", 3, 1, uuid_of(1), "/dev/nvidia1"),
    ]
    assert [node.number for gpu in found.gpus for node in gpu.nodes] == [("c", 195, minor) for minor in (2, 0, 3, 1)]
    assert {gpu.arch for gpu in found.gpus} == {"fermi"}
    assert [gpu.numa_node for gpu in found.gpus] == [0, 0, 1, None]
    assert {(gpu.model, gpu.driver, gpu.driver_version) for gpu in found.gpus} == {("Tesla M2090", "nvidia", DRIVER)}
    assert all(gpu.healthy and gpu.unsupported is None and gpu.note is None for gpu in found.gpus)
    assert (found.driver_version, found.unsupported) == (DRIVER, None)


def test_shared_nodes_have_the_numbers_of_now(four):
    """A number from before the restart may be another driver's: a container would open that one's device."""
    shared = {node.path: node for node in four.find().shared}
    assert {path: (node.number, node.present, node.mode) for path, node in shared.items()} == {
        "/dev/nvidiactl": (("c", 195, 255), True, 0o666),
        "/dev/nvidia-modeset": (("c", 195, 254), True, 0o666),
        "/dev/nvidia-uvm": (("c", 238, 0), True, 0o666),
        "/dev/nvidia-uvm-tools": (("c", 238, 1), True, 0o666),
    }
    four.write_majors(nvidia_uvm=241, watchdog=238)
    uvm = next(node for node in four.find().shared if node.path == "/dev/nvidia-uvm")
    assert (uvm.number, uvm.present) == (("c", 241, 0), False)
    assert "is 238:0, but its driver's is 241:0 now" in uvm.why_absent


def test_absent_nodes_are_told_from_a_driver_that_is_absent(four):
    """After a restart the nodes come with the first use; an operator must see which of the two to mend."""
    (four.root / "dev" / "nvidia2").unlink()
    (four.root / "dev" / "nvidia-uvm").unlink()
    (four.root / "dev" / "nvidia0").unlink()
    (four.root / "dev" / "nvidia0").write_text("")
    node = four.gpu().nodes[0]
    assert (node.path, node.number, node.present, node.mode) == ("/dev/nvidia2", ("c", 195, 2), False, None)
    assert "is not there: run hetero gpu-nodes, or nvidia-modprobe" in node.why_absent
    assert "is no device" in four.gpu("0000:06:00.0").nodes[0].why_absent
    four.write_majors(nvidia_uvm=None)
    uvm, tools = (node for node in four.find().shared if "uvm" in node.path)
    assert (uvm.major, uvm.present, uvm.why_absent) == (
        None,
        False,
        "driver nvidia-uvm is not loaded: run modprobe nvidia-uvm",
    )
    assert (tools.major, tools.present) == (None, False)


def test_gpus_without_a_driver_are_shown_with_what_is_missing(bare):
    """A machine before its set-up, or with GPUs kept for virtual machines, is not one without GPUs."""
    bare.pci("0000:05:00.0", 0x10DE, 0x1091)
    bare.pci("0000:06:00.0", 0x10DE, 0x2335, driver="vfio-pci")
    bare.pci("0000:07:00.0", 0x10DE, 0x1B06, 0x030000, driver="nouveau")
    bare.pci("0000:08:00.0", 0x10DE, 0x1B06, driver="pci-stub")
    # its sound device, and a bridge of the same vendor
    bare.pci("0000:07:00.1", 0x10DE, 0x10EF, 0x040300, driver="snd_hda_intel")
    bare.pci("0000:00:03.0", 0x10DE, 0x0AB0, 0x060400)
    found = bare.find()
    assert (found.driver_version, found.shared) == (None, [])
    assert [(gpu.arch, gpu.driver, gpu.index, gpu.nodes) for gpu in found.gpus] == [
        ("fermi", None, None, []),
        ("hopper", "vfio-pci", None, []),
        ("pascal", "nouveau", None, []),
        ("pascal", "pci-stub", None, []),
    ]
    assert [gpu.unsupported for gpu in found.gpus] == [
        "has no driver: load nvidia (modprobe nvidia)",
        "is bound to vfio-pci, for virtual machines: bind it to nvidia",
        "is bound to nouveau: bind it to nvidia",
        "is bound to pci-stub, for virtual machines: bind it to nvidia",
    ]


def test_a_machine_without_gpus_has_none(bare):
    """The same playbook runs on every host of a group."""
    bare.pci("0000:00:02.0", 0x1AF4, 0x1050, 0x030000, driver="virtio-pci")
    assert bare.find().gpus == []


def test_gpus_of_others_are_shown_and_not_handed_out(bare):
    """Their nodes say who shares what; a container that got /dev/kfd would have all of them."""
    bare.write_majors(kfd=234)
    bare.node("kfd", 234, 0, mode=0o660)
    folder = bare.pci("0000:03:00.0", 0x1002, 0x744C, 0x030000, driver="amdgpu")
    for name, number in (("card0", "226:0"), ("renderD128", "226:128")):
        (folder / "drm" / name).mkdir(parents=True)
        (folder / "drm" / name / "dev").write_text(f"{number}\n")
    (folder / "drm" / "card0-DP-1").mkdir()
    bare.node("dri/renderD128", 226, 128, mode=0o660)
    bare.pci("0000:00:02.0", 0x8086, 0x4680, 0x030000, driver="i915")
    intel, amd = bare.find().gpus
    assert (intel.vendor, intel.drm_nodes) == ("intel", [])
    assert (amd.vendor, amd.nodes, amd.unsupported) == ("amd", [], "is shown only: containers get GPUs of NVIDIA")
    assert [(node.path, node.number, node.present, node.mode) for node in amd.drm_nodes] == [
        ("/dev/dri/card0", ("c", 226, 0), False, None),
        ("/dev/dri/renderD128", ("c", 226, 128), True, 0o660),
        ("/dev/kfd", ("c", 234, 0), True, 0o660),
    ]


def test_a_gpu_that_only_one_side_knows_is_not_handed_out(four):
    """A GPU that fell off the bus, or that its driver could not set up, would fail its first program."""
    four.serve("0000:0b:00.0", 7)
    four.pci("0000:0c:00.0", 0x10DE, 0x1091, driver="nvidia")
    fallen, not_set_up = four.gpu("0000:0b:00.0"), four.gpu("0000:0c:00.0")
    assert not fallen.healthy
    assert "fell off the bus" in fallen.why_unhealthy
    assert not not_set_up.healthy
    assert "could not set it up" in not_set_up.why_unhealthy
    assert "does not show it" in not_set_up.unsupported


def test_a_gpu_without_a_minor_is_not_handed_out(four):
    """Lost: a container that starts with none of what it asked for: there is no node of such a GPU."""
    four.serve("0000:05:00.0", 2, **{"Device Minor": ""})
    assert four.gpu().unsupported == "driver nvidia gives it no minor: see dmesg, lines of NVRM"


def test_a_network_card_that_says_nothing_of_itself_manages_no_switches(four):
    """Lost: all GPUs of a machine, for a card of the switches' kind whose firmware has no product data."""
    four.pci("0000:c1:00.0", 0x15B3, 0x1021, pci_class=0x020700, driver="mlx5_core")
    assert four.find().unsupported is None


def test_a_gpu_has_no_uuid_before_its_first_use(four):
    """The driver writes question marks then, the same for every GPU: taken for a UUID they would be all one GPU."""
    four.serve("0000:05:00.0", 2, "GPU-????????-????-????-????-????????????")
    gpu = four.gpu()
    assert gpu.uuid is None
    assert "no UUID before its first use" in gpu.note


@pytest.mark.parametrize(
    ("device", "arch"),
    [
        (0x06D1, "fermi"), (0x1091, "fermi"), (0x1140, "fermi"), (0x1251, "fermi"),  # C2050, M2090, 610M, 560M
        (0x1021, "kepler"), (0x102D, "kepler"), (0x17FD, "maxwell"), (0x15F8, "pascal"), (0x1B06, "pascal"),
        (0x1DB4, "volta"), (0x1EB8, "turing"), (0x2187, "turing"), (0x20B0, "ampere"), (0x2204, "ampere"),
        (0x2684, "ada"), (0x26B5, "ada"), (0x2330, "hopper"), (0x2335, "hopper"), (0x2342, "hopper"),
        (0x2901, "blackwell"), (0x2B85, "blackwell"), (0x2941, "blackwell"), (0x3182, "blackwell"),
        (0x0A20, None), (0x10C0, None), (0x3000, None), (0x0000, None), (0xFFFF, None),
    ],
)  # fmt: skip
def test_architecture_by_device_id(device, arch):
    """A flavor that asks for fermi must not get a kepler; ids of chips older or newer than the table have no name."""
    assert architectures.of(device) == arch


def test_ranges_are_apart_and_in_order():
    """A device id in two ranges would have the architecture of whichever line comes first."""
    flat = [edge for first, last, _name in architectures.RANGES for edge in (first, last + 1)]
    assert flat == sorted(flat)
    assert {name for _first, _last, name in architectures.RANGES} == set(architectures.NAMES)


def test_an_unknown_device_id_says_what_to_do(four):
    """A GPU newer than the table is usable once the operator says what it is."""
    four.pci("0000:0b:00.0", 0x10DE, 0x9999, driver="nvidia")
    four.serve("0000:0b:00.0", 7)
    gpu = four.gpu("0000:0b:00.0")
    assert (gpu.arch, gpu.unsupported, gpu.healthy) == (None, None, True)
    assert gpu.note == "architecture of 10de:9999 is not known: set it by overrides (arch)"
    gpu = four.gpu("0000:0b:00.0", {"10de:9999": {"arch": "blackwell"}})
    assert (gpu.arch, gpu.note) == ("blackwell", None)


@pytest.mark.parametrize(
    "name", ["0000:05:00.0", "05:00.0", uuid_of(2), uuid_of(2).upper(), "0", 0, "10de:1091", "0x1091"]
)
def test_the_operators_word_wins(four, name):
    """The four ways in which people name a GPU mean the same one."""
    overrides = {name: {"arch": "kepler", "healthy": False}}
    gpu = four.gpu(overrides=overrides)
    assert (gpu.arch, gpu.healthy) == ("kepler", False)
    assert "overrides say" in gpu.why_unhealthy
    of_the_kind = ["0000:8a:00.0"] * ("1091" in str(name))
    assert [gpu.address for gpu in four.find(overrides).gpus if gpu.arch == "kepler"] == ["0000:05:00.0", *of_the_kind]
    assert four.find(overrides).unused_overrides == []


def test_a_nearer_name_wins_over_a_kind(four):
    """Who says something of all M2090 and something of one of them means the latter for that one."""
    said = {"0000:05:00.0": "volta", "10de:1091": {"arch": "kepler", "healthy": False}, "77": "ada"}
    gpu = four.gpu(overrides=said)
    assert (gpu.arch, gpu.healthy) == ("volta", False)
    assert four.gpu("0000:8a:00.0", said).arch == "kepler"
    assert four.find(said).unused_overrides == ["77"]


def test_indices_are_the_operators_and_one_for_each(four):
    """Tenants of a machine whose GPUs were renumbered keep their numbers; two GPUs of one number would be a gamble."""
    swapped = {"0000:05:00.0": {"index": 3}, "0000:8a:00.0": {"index": 0}}
    assert [gpu.index for gpu in four.find(swapped).gpus] == [3, 1, 2, 0]
    with pytest.raises(BadInput, match=r"GPU 3: is the index of 0000:05:00\.0, 0000:8a:00\.0: give each its own"):
        four.find({"0000:05:00.0": {"index": 3}})


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"0000:05:00": "fermi"}, "GPU 0000:05:00: names no GPU"),
        (["fermi"], "GPU overrides: are ['fermi']: write {"),
        ({"0": "firmi"}, "no such architecture: firmi (known: fermi, kepler"),
        ({"0": {"arc": "fermi"}}, "is not made of arch, index, healthy"),
        ({"0": {}}, "is not made of arch, index, healthy"),
        ({"0": {"index": "3"}}, "index is not int: '3'"),
        ({"0": {"index": True}}, "index is not int: True"),
        ({"0": {"index": -1}}, "index is below 0: -1"),
        ({"0": {"healthy": "no"}}, "healthy is not bool: 'no'"),
    ],
)
def test_wrong_overrides_are_told(four, overrides, text):
    """A word that nobody understands must not be taken for agreement."""
    with pytest.raises(BadInput, match=r".") as raised:
        four.find(overrides)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    "kind", ["x86_64 Kernel Module", "Open Kernel Module for x86_64", "aarch64 Kernel Module", "Linux Kernel Module"]
)
def test_driver_version_of_either_kernel_module(four, kind):
    """NVIDIA ships a closed and an open module, and each says its version in other words."""
    four.load("550.54.15", kind)
    assert four.find().driver_version == "550.54.15"


def test_a_gpu_in_mig_instances_is_refused(four):
    """Its nodes are those of instances, which the whole GPU's node does not open."""
    capabilities = four.nvidia / "capabilities"
    (capabilities / "gpu0" / "mig").mkdir(parents=True)  # MIG off, on a GPU that could
    (capabilities / "gpu2" / "mig" / "gi1" / "ci0").mkdir(parents=True)
    (capabilities / "gpu2" / "mig" / "gi2").mkdir(parents=True)
    four.write_majors(nvidia_caps=240)
    four.node("nvidia-caps/nvidia-cap12", 240, 12, mode=0o444)
    found = four.find()
    assert [gpu.address for gpu in found.gpus if gpu.unsupported] == ["0000:05:00.0"]
    assert "is cut into 2 MIG instances" in four.gpu().unsupported
    assert "nvidia-smi -i 2 -mig 0" in four.gpu().unsupported
    assert [(node.path, node.number, node.present) for node in found.caps] == [
        ("/dev/nvidia-caps/nvidia-cap12", ("c", 240, 12), True)
    ]


@pytest.mark.parametrize(
    ("device", "vpd"),
    [
        (dict(vendor=0x10DE, device=0x22A3, pci_class=0x068000), None),
        (dict(vendor=0x10DE, device=0x1AC2, pci_class=0x068000, driver="nvidia-nvswitch"), None),
        (dict(vendor=0x15B3, device=0x1021, pci_class=0x020700, driver="mlx5_core"), b"\x82\0SMDL=SW_MNG\0"),
    ],
)
def test_a_machine_with_nvswitches_is_refused(four, device, vpd):
    """One GPU behind NVSwitches does not run a program alone, and would take its partition from the others."""
    folder = four.pci("0000:c1:00.0", **device)
    if vpd:
        # the network card beside it has the same numbers
        (folder / "vpd").write_bytes(b"\x82\0SMDL=NETWORK\0")
        assert four.find().unsupported is None
        (folder / "vpd").write_bytes(vpd)
    found = four.find()
    assert found.unsupported.startswith("NVSwitch at 0000:c1:00.0: ")
    assert {gpu.unsupported for gpu in found.gpus} == {found.unsupported}


def test_a_gpu_that_the_driver_was_told_to_leave_alone(four):
    """It is not counted by nvidia-smi either, so the GPUs behind it move up."""
    four.serve("0000:05:00.0", 2, **{"GPU Excluded": "Yes"})
    assert "NVreg_ExcludedGpus" in four.gpu().unsupported
    assert [gpu.index for gpu in four.find().gpus] == [None, 0, 1, 2]


def test_faults_of_the_gpu_count_and_faults_of_programs_do_not(four):
    """A tenant's crash must not take a GPU out of use; a GPU that fell off the bus must not be handed out."""
    four.log(
        "NVRM: Xid (PCI:0000:05:00): 31, pid=1234, name=python3, Ch 00000010, MMU Fault",
        "NVRM: Xid (PCI:0000:05:00): 13, pid=1234, Graphics Exception",
        "NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (0000:89:00): 48, An uncorrectable double bit error (DBE) has been detected",
    )
    assert [gpu.healthy for gpu in four.find().gpus] == [True, False, False, True]
    sick = four.gpu("0000:06:00.0").why_unhealthy
    assert sick.startswith("Xid 79 since the driver was loaded (NVRM: Xid (PCI:0000:06:00): 79, pid=")
    assert four.gpu("0000:06:00.0", {"0000:06:00.0": {"healthy": True}}).healthy
    four.log("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Jul 13 16:03:43 UTC 2022")
    assert all(gpu.healthy for gpu in four.find().gpus)


def test_where_the_kernels_log_is_closed_its_journal_is_read(four, tmp_path, monkeypatch):
    """Some containers have no /dev/kmsg; without a journal either, no fault is known."""
    four.log("NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.")
    (four.root / "dev" / "kmsg").rename(tmp_path / "log")
    assert all(gpu.healthy for gpu in four.find().gpus)
    (four.root / "run" / "systemd" / "system").mkdir(parents=True)
    journalctl = tmp_path / "bin" / "journalctl"
    journalctl.parent.mkdir()
    journalctl.write_text(f"#!/bin/sh\ncat {tmp_path}/log\n")
    journalctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{journalctl.parent}:/usr/bin:/bin")
    assert [gpu.healthy for gpu in four.find().gpus] == [True, False, True, True]


def test_this_machines_own_log_is_read_to_its_end(four, monkeypatch):
    """The log is a device that gives one record a read and never ends: a read that waits would hang every attach."""
    if not os.access("/dev/kmsg", os.R_OK):
        four.node("kmsg", 1, 3)
    else:
        (four.root / "dev" / "kmsg").unlink()
        (four.root / "dev" / "kmsg").symlink_to("/dev/kmsg")
    assert len(four.find().gpus) == 4
