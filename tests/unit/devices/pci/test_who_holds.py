# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a device, and what of the host needs it; what that makes of its state and of Nova's pools.

Tests devices/pci/network.py, devices/pci/pools.py, plugin_utils/filters/pci_table.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.processes import Process
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import info, network, sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.holders import _process, holders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.persistence import Binding, write
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.pools import pools
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.pci_table import pci_table

NVME = "0000:02:00.0"
NIC = "0000:03:00.0"
GPU = "0000:85:00.0"


def said(paths, address):
    """[(kind, text)] of a device's holders."""
    device = sysfs.devices(paths)[address]
    return [(holder.kind, holder.text) for holder in holders([device], paths)[0][address]]


@pytest.fixture
def disk(host):
    """An NVMe disk with a partition, and a logical volume on that."""
    sys = host.root / "sys"
    folder = host.add(NVME, driver="nvme", group=3)
    for path, number in (("nvme0n1", "259:0"), ("nvme0n1/nvme0n1p1", "259:1")):
        block = folder / "nvme/nvme0/block" / path
        block.mkdir(parents=True)
        (block / "dev").write_text(f"{number}\n")
        known(sys, number, block)
    volume = sys / "devices/virtual/block/dm-0"
    volume.mkdir(parents=True)
    (volume / "dev").write_text("253:0\n")
    known(sys, "253:0", volume)
    part = folder / "nvme/nvme0/block/nvme0n1/nvme0n1p1"
    (part / "holders").mkdir()
    (part / "holders/dm-0").symlink_to(volume)
    return host


def known(sys, number, block):
    for folder, name in (("dev/block", number), ("class/block", block.name)):
        (sys / folder).mkdir(parents=True, exist_ok=True)
        (sys / folder / name).symlink_to(block)


def test_a_disk_with_a_file_system_on_it(disk):
    """Bound to vfio-pci, its file system would be gone under whoever writes to it."""
    line = "36 1 253:0 / /srv rw,relatime shared:1 - ext4 /dev/mapper/vg-srv rw\n"
    assert said(disk.own_proc(line), NVME) == [
        ("storage", "nvme0n1p1 is part of dm-0"),
        ("storage", "dm-0 is mounted on /srv"),
    ]


def test_a_btrfs_is_known_by_its_source(disk):
    """Its number in mountinfo is no device's."""
    line = "36 1 0:33 / /srv rw,relatime - btrfs /dev/nvme0n1p1 rw\n"
    assert ("storage", "nvme0n1p1 is mounted on /srv") in said(disk.own_proc(line), NVME)


def test_swap(disk):
    """Pages of processes lie there."""
    paths = disk.own_proc(swaps="/dev/nvme0n1p1 partition 1000 0 -2\n")
    assert ("storage", "nvme0n1p1 is used as swap") in said(paths, NVME)


@pytest.fixture
def nic(host):
    """A network card with interface eth0, on which bridge br0 is built."""
    (host.add(NIC, driver="virtio-pci", group=4) / "virtio0/net/eth0").mkdir(parents=True)
    (host.root / "sys/class/net/eth0/upper_br0").mkdir(parents=True)
    (host.root / "sys/class/net/br0").mkdir()
    return host


ROUTES = "br0 00000000 FE02000A 0003 0 0 0 00000000\nbr0 0002000A 00000000 0001 0 0 0 00FFFFFF\n"


def test_the_default_route_through_a_bridge(nic):
    """The machine would be out of reach, for the user too."""
    assert said(nic.own_proc(route=ROUTES), NIC) == [("network", "the default route goes over br0, which is on eth0")]


def test_a_root_over_the_network(nic):
    """A netbooted host lives on that card."""
    line = "21 1 0:20 / / rw - nfs 10.0.2.254:/fs_0 rw,vers=3,mountaddr=10.0.2.253,addr=10.0.2.254\n"
    routes = "eth0 0002000A 00000000 0001 0 0 0 00FFFFFF\neth9 0000000A 00000000 0001 0 0 0 000000FF\n"
    paths = nic.own_proc(line, route=routes)
    assert said(paths, NIC) == [("network", "/ (mounted from 10.0.2.254) goes over eth0")]


def test_this_login(nic):
    """The play would saw off the branch that it sits on."""
    paths = nic.own_proc(route6="fd00" + "0" * 28 + " 40 " + "0" * 32 + " 00 " + "0" * 32 + " 100 1 0 1 eth0\n")
    login = {"SSH_CONNECTION": "fd00::1%eth0 51000 fd00::2 22"}
    assert network.uses(["eth0"], paths, login) == ["this login from fd00::1 goes over eth0"]
    assert network.uses(["eth1"], paths, login) == []


def test_a_card_that_nobody_needs(nic):
    """It is what people want to give away."""
    assert said(nic.own_proc(route="eth1 00000000 FE02000A 0003 0 0 0 00000000\n"), NIC) == []


@pytest.fixture
def gpu(host):
    """A display whose node is /dev/full's."""
    folder = host.add(GPU, "10de:11bf", "nouveau", 12, "030000", numa=1) / "drm/card0"
    folder.mkdir(parents=True)
    (folder / "dev").write_text("1:7\n")
    return host


def test_who_calls_itself_nvidia_persistenced_is_a_process(gpu, tmp_path):
    """Lost: a job, for an operator who is told that only the daemon has its GPU."""
    program = tmp_path / "nvidia-persistenced"
    shutil.copy("/bin/sleep", program)
    with open("/dev/full", "rb") as full:
        process = subprocess.Popen([program, "60"], stdin=full)
    with process:
        try:
            assert said(gpu.paths, GPU) == [("process", f"a process has it open: nvidia-persiste (pid {process.pid})")]
        finally:
            process.kill()


DAEMON = "nvidia-persistenced.service"


@pytest.mark.parametrize(
    ("cgroup", "whose", "unit"),
    [
        (f"0::/system.slice/{DAEMON}", {}, DAEMON),
        (f"12:devices:/\n1:name=systemd:/system.slice/{DAEMON}\n0::/", {}, DAEMON),
        (f"0::/lxc.payload.box/system.slice/{DAEMON}", {"container": "box"}, None),
        (f"0::/system.slice/{DAEMON}", {"container": "box"}, None),
        (f"0::/system.slice/{DAEMON}", {"domain": "ml-8"}, None),
        ("0::/lxc.payload.box/ssh.service", {"container": "box"}, None),
        ("0::/lxc.payload.box/--host=evil.service", {}, None),
        ("0::/system.slice/cron.service", {}, None),
        (f"0::/system.slice/cron.service/system.slice/{DAEMON}", {}, None),
        (f"0::/user.slice/user-1000.slice/user@1000.service/app.slice/{DAEMON}", {}, None),
        (f"0::/system.slice/{DAEMON}/below", {}, None),
        (f"0::/a\r0::/system.slice/{DAEMON}", {}, None),
        (None, {}, None),
    ],
)
def test_only_a_service_that_systemd_made_is_stopped(tmp_path, cgroup, whose, unit):
    """Lost: any service of the host, or a login as root at a stranger's, to a container whose root calls its process
    and its cgroup so: the service by which a GPU is held is stopped, and started again.
    """
    if cgroup is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "cgroup").write_text(f"{cgroup}\n", newline="")
    device = SimpleNamespace(driver="nvidia", changing=False)
    process = Process(7, "nvidia-persiste", **whose)
    found = _process(GPU, process, device, SimpleNamespace(proc=str(tmp_path)))
    assert (found.unit, found.kind == "daemon") == (unit, unit is not None)


def test_the_display_that_the_machine_boots_on(host):
    """The console goes with it."""
    host.add(GPU, driver="nouveau", boot_vga="1")
    assert said(host.paths, GPU) == [("display", "is the display that this machine boots on")]
    assert info.information(host.paths)["devices"][0]["state"] == "host"


def test_an_instance_of_this_host(gpu):
    """A GPU is never in a container and in a guest."""
    os.makedirs(os.path.dirname(gpu.paths.state_db), exist_ok=True)
    with Store(gpu.paths.state_db) as store:
        wanted = GpuRequest(1, None, [], False)
        store.grant(Allocation(GPU, "/var/lib/lxc/ml-7#1", None, False, "attached", 0.0, wanted))
    assert said(gpu.paths, GPU) == [("allocation", "is allocated to /var/lib/lxc/ml-7#1")]
    assert info.information(gpu.paths)["devices"][0]["state"] == "allocated"


DOMAIN = """\
<domain type='kvm'><name>ml-8</name><devices>
<hostdev mode='subsystem' type='pci' managed='yes'>
<source><address domain='0x0000' bus='0x85' slot='0x00' function='0x0'/></source></hostdev>
<hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source></hostdev>
</devices></domain>
"""


def test_domains_of_libvirt(gpu):
    """Defined, it is somebody's; running, it is in use, even where no process is seen."""
    for folder, text, state in (
        (gpu.paths.domains, DOMAIN, "claimed"),
        (gpu.paths.running_domains, f"<domstatus state='running'>{DOMAIN}</domstatus>", "allocated"),
    ):
        os.makedirs(folder)
        with open(os.path.join(folder, "ml-8.xml"), "w", encoding="utf-8") as file:
            file.write(text)
        (device,) = info.information(gpu.paths)["devices"]
        assert (device["domains"], device["state"]) == (["ml-8"], state)
    assert said(gpu.paths, GPU) == [("guest", "running domain ml-8 has it")]


def test_a_domain_that_cannot_be_read_is_no_domain_without_devices(gpu):
    """Its card would be given to somebody else."""
    os.makedirs(gpu.paths.domains)
    with open(os.path.join(gpu.paths.domains, "ml-8.xml"), "w", encoding="utf-8") as file:
        file.write("<domain>")
    with pytest.raises(HeteroError, match="is no XML"):
        said(gpu.paths, GPU)


def test_what_is_not_as_it_was_meant(gpu):
    """A card that was swapped, one that was taken out, one that the host's driver got first."""
    bindings = [Binding(GPU, "10de", "2204", "vfio-pci"), Binding("0000:09:00.0", "10de", "11bf", "vfio-pci")]
    gpu.add("0000:86:00.0", "10de:11bf", "nouveau", 13)
    bindings.append(Binding("0000:86:00.0", "10de", "11bf", "vfio-pci"))
    write({binding.address: binding for binding in bindings}, gpu.paths)
    found = info.information(gpu.paths)
    assert [problem.partition(":00.0 ")[2].partition(",")[0] for problem in found["problems"]] == [
        "is bound to vfio-pci at each boot",
        "is 10de:11bf",
        "is on nouveau",
    ]
    assert [(device["address"], device["state"], device["persistent"]) for device in found["devices"]] == [
        (GPU, "available", None),
        ("0000:86:00.0", "available", "vfio-pci"),
        ("0000:09:00.0", "removed", "vfio-pci"),
    ]


def test_interrupts_that_a_guest_may_raise(gpu):
    """Lost: the host, to any guest that was given a device."""
    path = os.path.join(gpu.paths.sys, "module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")
    os.makedirs(os.path.dirname(path))
    for said, problems in (("N\n", 0), ("Y\n", 1)):
        with open(path, "w", encoding="utf-8") as file:
            file.write(said)
        assert len(info.information(gpu.paths)["problems"]) == problems


def device(address, state="available", kind="type-PCI", parent=None, interface=None):
    ids = dict(vendor_id="10de", product_id="11bf", numa_node=1)
    return dict(ids, address=address, state=state, type=kind, parent=parent, parent_interface=interface)


def test_pools_as_nova_counts_them():
    """A scheduler that counts otherwise promises a card that is not there (nova 34: one pool a card)."""
    functions = [device(f"0000:05:10.{n}", "available", "type-VF", "0000:05:00.0", "eth1") for n in range(3)]
    shown = [
        device("0000:85:00.0"),
        device("0000:86:00.0", "allocated"),
        device("0000:05:00.0", "available", "type-PF"),
        *functions,
    ]
    first, card, virtual = pools(shown)
    assert first == dict(
        vendor_id="10de",
        product_id="11bf",
        numa_node=1,
        dev_type="type-PCI",
        address="0000:85:00.0",
        count=1,
        devices=["0000:85:00.0"],
    )
    assert (card["count"], card["remote_managed"]) == (1, "false")
    assert (virtual["count"], virtual["address"], virtual["parent_ifname"]) == (3, "0000:05:00.0", "eth1")


@pytest.mark.parametrize(("taken", "left"), [("0000:05:10.0", ["0000:05:10.1"]), ("0000:05:00.0", [])])
def test_a_card_and_its_functions_exclude_each_other(taken, left):
    """Given as a whole it has no functions left, and given by function it is no whole any more."""
    shown = [device("0000:05:00.0", kind="type-PF")]
    shown += [device(f"0000:05:10.{n}", kind="type-VF", parent="0000:05:00.0") for n in range(2)]
    for one in shown:
        one["state"] = "allocated" if one["address"] == taken else "available"
    assert [address for pool in pools(shown) for address in pool["devices"]] == left


def test_the_table(gpu):
    """What a person compares with lspci."""
    lines = pci_table(info.information(gpu.paths)["devices"])
    assert lines[0].split() == ["ADDRESS", "DRIVER", "GROUP", "NUMA", "TYPE", "STATE", "HOLDERS", "DEVICE"]
    assert lines[1].split()[:7] == [GPU, "nouveau", "12", "1", "type-PCI", "available", "-"]
    assert lines[1].endswith("[10de:11bf] (rev a1)")
    with pytest.raises(AnsibleFilterError, match="needs a list of devices"):
        pci_table({"devices": []})
