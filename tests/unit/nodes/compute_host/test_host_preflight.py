# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user learns too late, and one reason at a time, why a machine cannot give its GPUs to containers.

Tests compute_host/network.py, nodes/compute_host/bridge.py, nodes/compute_host/id_maps.py,
nodes/compute_host/preflight.py, nodes/compute_host/selftest.py.
"""

from __future__ import annotations

import ctypes
import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import network
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings, summary
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import kernel
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import (
    bridge,
    id_maps,
    preflight,
    selftest,
)
from ansible_collections.hetero.compute.tests.in_time import in_time
from ansible_collections.hetero.compute.tests.unit.devices.gpus.four import Seen
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

PLAN = preflight.Plan(bridge="nobridge0", network="198.51.100.0/24")


def texts(found):
    return [str(defect) for defect in found.defects]


def mountinfo(root, *lines):
    (root / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "self" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    return str(root / "proc")


def refuse(number):
    def call(*_arguments):
        raise OSError(number, os.strerror(number))

    return call


# --- the device cgroup


def test_no_device_cgroup(tmp_path):
    """Each container would open each GPU of the host."""
    found = Findings()
    preflight.device_cgroup(found, mountinfo(tmp_path, "24 1 0:22 / /proc rw - proc proc rw"))
    assert texts(found)[0].startswith(
        "device cgroup: neither cgroup v1's controller `devices` nor cgroup v2 is mounted"
    )


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSYS, "takes no device programs"),
        (errno.EINVAL, "takes no device programs"),
        (errno.EPERM, "bpf(2) is refused"),
    ],
)
def test_cgroup_v2_without_programs(tmp_path, monkeypatch, number, what):
    proc = mountinfo(tmp_path, "30 1 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    monkeypatch.setattr(bpf, "load", refuse(number))
    found = Findings()
    preflight.device_cgroup(found, proc)
    assert len(found.defects) == 1
    assert what in texts(found)[0]
    assert found.facts["cgroup"] == "v2"


def test_cgroup_v2_with_programs(tmp_path):
    """A real program, loaded into this kernel and let go."""

    def programs():
        """Return which descriptors are of BPF; others may be left by other tests, and closed meanwhile."""
        links = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        return {link.name for link in links if link.is_symlink() and "bpf" in os.readlink(link)}

    before, found = programs(), Findings()
    preflight.device_cgroup(found, mountinfo(tmp_path, "30 1 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"))
    assert (texts(found), found.facts["cgroup"]) == ([], "v2")
    assert programs() == before


def test_cgroup_v1_that_cannot_be_written(tmp_path):
    point = tmp_path / "devices"
    point.mkdir()
    proc = mountinfo(tmp_path, f"30 1 0:25 / {point} ro - cgroup cgroup rw,devices")
    (point / "devices.deny").write_text("")
    found = Findings()
    preflight.device_cgroup(found, proc)
    assert (texts(found), found.facts["cgroup"]) == ([], "v1")
    libc = ctypes.CDLL(None, use_errno=True)
    bind, remount, read_only = 4096, 32, 1  # sys/mount.h
    assert libc.mount(str(point).encode(), str(point).encode(), None, bind, None) == 0, os.strerror(ctypes.get_errno())
    try:
        assert libc.mount(None, str(point).encode(), None, bind | remount | read_only, None) == 0
        preflight.device_cgroup(found, proc)
    finally:
        assert libc.umount2(str(point).encode(), 0) == 0
    assert "is mounted read-only" in texts(found)[0]


# --- LXC and unprivileged containers


@pytest.mark.parametrize(
    ("installed", "candidate", "defect"),
    [
        ("(none)", "1:5.0.2-1+deb12u4", None),
        ("(none)", "(none)", None),
        ("1:3.0.3-8", "1:5.0.2-1", "liblxc1: 1:3.0.3-8 does not limit devices on cgroup v2"),
        ("(none)", "2.0.11-1", "liblxc1: 2.0.11-1 does not limit devices on cgroup v2"),
        ("1:4.0.6-2", "1:4.0.6-2", None),
    ],
)
def test_the_version_of_liblxc(tmp_path, monkeypatch, installed, candidate, defect):
    program = tmp_path / "apt-cache"
    program.write_text(f"#!/bin/sh\nprintf 'liblxc1:\\n  Installed: {installed}\\n  Candidate: {candidate}\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = Findings()
    preflight.liblxc(found)
    assert [text.split(" (4.0")[0] for text in texts(found)] == ([defect] if defect else [])


def test_a_kernel_with_apparmor_needs_who_loads_its_profiles(tmp_path):
    """LXC is installed without what it recommends; no container would start."""
    assert preflight.profiles(str(tmp_path)) == []
    parameters = tmp_path / "module" / "apparmor" / "parameters"
    parameters.mkdir(parents=True)
    (parameters / "enabled").write_text("Y\n")
    assert preflight.profiles(str(tmp_path)) == ["apparmor"]


def test_a_kernel_without_mounts_by_descriptor(monkeypatch):
    """Linux 4.19: the instance would start, and its GPU's node could not be made."""
    found = Findings()
    preflight.unprivileged(found)
    assert texts(found) == []
    monkeypatch.setattr(kernel, "clone_mount", refuse(errno.ENOSYS))
    preflight.unprivileged(found)
    assert "open_tree(2) or mount_setattr(2) does not work here" in texts(found)[0]
    assert "use Linux 5.12 or newer, or set gpu_lxc_unprivileged: false" in texts(found)[0]


@pytest.mark.parametrize("most", ["0\n", None])
def test_a_kernel_without_user_namespaces(tmp_path, most):
    (tmp_path / "sys" / "user").mkdir(parents=True)
    if most:
        (tmp_path / "sys" / "user" / "max_user_namespaces").write_text(most)
    found = Findings()
    preflight.unprivileged(found, str(tmp_path))
    assert texts(found)[0].startswith("user namespaces: this kernel has none, or allows none")


# --- subordinate ids


def test_ids_for_containers_are_nobody_elses(tmp_path):
    """Another user's process would own the files of containers whose ids he has, too."""
    found = Findings()
    files = (str(tmp_path / "subuid"), str(tmp_path / "subgid"))
    (tmp_path / "subuid").write_text("alice:100000:65536\nlxd:1000000:1000000000\n# root:1:70000\n")
    lines = id_maps.wanted(found, files)
    assert lines == dict.fromkeys(files, "root:1001000000:65536000"), "users and groups have the same"
    # what was written is kept
    for path in files:
        Path(path).write_text(f"root:5:9\n{lines[path]}\n")
    assert id_maps.wanted(found, files) == lines
    assert found.notes == []
    (tmp_path / "subuid").write_text("root:100000:65536\nalice:100000:65536\n")
    (tmp_path / "subgid").write_text("root:100000:165536\n")
    assert id_maps.wanted(found, files) == {files[0]: "root:100000:65536", files[1]: "root:100000:165536"}
    assert "is another user's, too" in str(found.notes[0])
    assert "are enough for 1 container at a time" in str(found.notes[1])
    (tmp_path / "subuid").write_text("lxd:1000000:4280000000\n")
    id_maps.wanted(found, files)
    assert "there are no 65536000 ids behind 4281000000" in texts(found)[0]


# --- disks


def test_a_machine_without_loop_devices_is_told(monkeypatch):
    """Lost: a tenant fills the host's disk, or no container is ever made."""
    found = Findings()
    preflight.disks(PLAN, found)
    assert texts(found) == []
    monkeypatch.setattr(loop, "CONTROL", "/nowhere")
    preflight.disks(PLAN, found)
    assert "containers' disks: no loop device can be had" in texts(found)[0]


def test_a_promise_of_more_than_there_is_is_told():
    """Lost: an operator over-commits disks and does not know."""
    found = Findings()
    preflight.disks(replace(PLAN, local_gb=10**6), found)
    said = str(found.notes[0])
    assert "1000000 GiB are offered to instances, and its file system has" in said
    assert "promise" not in said, "a new host has promised nothing to anybody"
    preflight.disks(replace(PLAN, local_gb=1), found)
    assert (len(found.notes), found.defects) == (1, [])


def test_containers_of_an_earlier_release_are_named(tmp_path):
    """Lost: an operator believes that all containers are apart."""
    number = "# hetero.compute: id 0123456789abcdef0123456789abcdef of folder 5\n"
    for name, text in (("old", number), ("new", number), ("other", "lxc.uts.name = other\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config").write_text(text)
    (tmp_path / "new" / "root.ext4").write_text("")
    found = Findings()
    preflight.earlier(replace(PLAN, lxcpath=str(tmp_path)), found)
    assert [str(note).partition(":")[0] for note in found.notes] == ["container old"]


def test_a_pipe_among_containers_is_said_and_not_waited_for(tmp_path):
    """Lost: the set-up of a host, which waited for it for ever."""
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd" / "config")
    found = Findings()
    with in_time():
        preflight.earlier(replace(PLAN, lxcpath=str(tmp_path)), found)
    assert [str(note) for note in found.notes] == [
        f"{tmp_path}/odd/config: cannot be read as a container's configuration (it is no plain file): correct it: put "
        "the container's own file there, or move a folder away that is no container's"
    ]


# --- the network


def test_the_network_of_a_bridge_to_be_made():
    found = Findings()
    facts = network.look(PLAN, found)
    assert facts == {
        "network": "198.51.100.0/24",
        "prefix_length": 24,
        "gateway": "198.51.100.1",
        "addresses": ["198.51.100.10", "198.51.100.254"],
    }
    assert texts(found) == []


def test_a_large_network_has_no_more_addresses_than_have_their_rules():
    """Lost: minutes at each set-up, and each boot, for rules of addresses that nobody will have."""
    facts = network.look(replace(PLAN, network="44.0.0.0/8"), Findings())
    assert facts["addresses"] == ["44.0.0.10", "44.0.16.9"]


def test_the_bridge_s_rules_keep_the_addresses_of_instances_that_there_are(tmp_path):
    """Lost: the network of a running container, when its host is set up again with another range."""
    plan = replace(PLAN, addresses=["198.51.100.10"] * 2, state_folder=str(tmp_path))
    assert bridge.taken(plan) == []
    with Store(str(tmp_path / "host.db")) as store:
        flavor = dict(name="c1", memory_mb=1, vcpus=1, local_gb=1, extra_specs={})
        asked = Asked("ml-8", "jo", flavor, "debian", KEY, "lxc")
        store.claim(asked, dict(memory_mb=2, vcpus=2, local_gb=2), Seen, ())
        store.put("ml-8", address="198.51.100.77")
    facts = bridge.look(plan)
    assert all(pinning.pin("lxc", address) in facts["rules"] for address in ("198.51.100.10", "198.51.100.77"))
    assert facts["rules_loaded"] is False


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        (dict(network="198.51.100.1/24"), "gpu_lxc_network: 198.51.100.1/24 has host bits set"),
        (dict(network="198.51.100.0/30"), "gpu_lxc_network: 198.51.100.0/30 has no room"),
        (dict(network="127.0.0.0/24"), "gpu_lxc_network: 127.0.0.0/24 is the containers' network, and lo has"),
        (dict(gateway="198.51.101.1"), "gpu_lxc_gateway: 198.51.101.1 is not an address of"),
        (dict(gateway="gate"), "gpu_lxc_gateway: gate is not an address of"),
        (dict(addresses=["198.51.100.9"]), "gpu_lxc_addresses: is ['198.51.100.9']"),
        (dict(addresses=["198.51.100.9", "198.51.100.2"]), "gpu_lxc_addresses: is ["),
        (dict(addresses=["198.51.100.9", "198.51.100.255"]), "gpu_lxc_addresses: 198.51.100.255 is not an address"),
        (dict(make_bridge=False), "nobridge0: there is no such bridge"),
        (dict(bridge="lo"), "lo: is an interface, and no bridge"),
    ],
)
def test_each_defect_of_the_network_is_named(changes, defect):
    found = Findings()
    network.look(replace(PLAN, **changes), found)
    assert len(found.defects) == 1
    assert texts(found)[0].startswith(defect)


# --- GPUs, folders, and all of it


def test_what_is_worth_knowing_of_gpus(four):
    """A GPU that nobody ever gets, with no word why."""
    four.pci("0000:0b:00.0", 0x10DE, 0x1091, driver="vfio-pci")
    (four.root / "dev" / "nvidia3").unlink()
    found = Findings()
    preflight.gpus(replace(PLAN, gpu_overrides={"0000:77:00.0": {"arch": "fermi"}}), found, four.paths)
    assert found.defects == []
    assert len(found.facts["gpus"]) == 5
    assert found.facts["absent_nodes"] == ["/dev/nvidia3"]
    notes = " | ".join(str(note) for note in found.notes)
    assert "0000:0b:00.0: is bound to vfio-pci, for virtual machines" in notes
    assert "gpu_lxc_overrides, 0000:77:00.0: no GPU here has that name" in notes


def test_no_driver_and_no_gpu(bare):
    found = Findings()
    preflight.gpus(PLAN, found, bare.paths)
    assert [str(note) for note in found.notes] == [
        "this machine: has no NVIDIA GPU: install the driver; there is nothing to give before"
    ]
    preflight.gpus(replace(PLAN, gpu_overrides={"0000:05:00.0": {"colour": "green"}}), found, bare.paths)
    assert texts(found)[0].startswith("gpu_lxc_overrides: ")


def test_folders_where_no_device_opens():
    found = Findings()
    preflight.folders(replace(PLAN, lxcpath="/proc/hetero", state_folder="/root"), found)
    nodev = bool(os.statvfs("/proc").f_flag & os.ST_NODEV)
    assert [text.split(": ")[0] for text in texts(found)] == (["/proc/hetero"] if nodev else [])


def test_all_of_it_on_this_machine(monkeypatch):
    """It looks to its end, and says all at once."""
    monkeypatch.setattr(preflight, "system", lambda found: True)
    found = preflight.look(replace(PLAN, packages=["dpkg", "no-such-package"], network="127.0.0.0/24", bridge="lo"))
    assert set(found.facts) == {
        "cgroup", "missing_packages", "lxc_net", "id_maps", "network", "bridge_stands", "gpus", "absent_nodes",
    }  # fmt: skip
    assert found.facts["missing_packages"] == ["no-such-package"]
    assert summary(found, "a compute host").startswith("this machine cannot be set up as a compute host: 1 thing")


def test_a_bridge_stands_when_it_is_up_with_its_address():
    """`gpu_host` would call a host right whose containers have no way out."""
    assert network.stands("lo", "127.0.0.1")
    assert not network.stands("lo", "127.0.0.9")
    assert not network.stands("nobridge0", "127.0.0.1")


def test_a_host_without_its_bridge_is_not_called_ready():
    with pytest.raises(HeteroError, match="nobridge0: there is no such bridge: see: systemctl status hetero-bridge"):
        selftest.check("nobridge0", "")
