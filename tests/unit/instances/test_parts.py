# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container is made of. If these fail, its users own what is others', or it does not start, or has no limits.

Tests hypervisors/lxc/id_maps.py, hypervisors/lxc/limits.py.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import (
    read_config,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import Paths, here
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import id_maps, limits


def test_owners_are_shifted_and_modes_stay(tmp_path):
    """A set-user-id program that lost its bit, or a file that stays the host's root's, breaks a container's system."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    for name, mode, owner in (("su", 0o4755, 0), ("mail", 0o2755, 8), ("plain", 0o640, 1000)):
        (root / name).write_text(name)
        os.chown(root / name, owner, owner)
        (root / name).chmod(mode)
    os.link(root / "su", root / "etc" / "su-too")
    (root / "link").symlink_to("/etc/passwd")
    before = os.stat("/etc/passwd").st_uid
    id_maps.shift(str(root), id_maps.of(1000000), "image x")
    found = {path.name: path.lstat() for path in [root, *root.rglob("*")]}
    assert {name: (one.st_uid, one.st_gid) for name, one in found.items()} == {
        "root": (1000000, 1000000), "etc": (1000000, 1000000), "su": (1000000, 1000000), "su-too": (1000000, 1000000),
        "mail": (1000008, 1000008), "plain": (1001000, 1001000), "link": (1000000, 1000000),
    }  # fmt: skip
    assert [stat.S_IMODE(found[name].st_mode) for name in ("su", "mail", "plain")] == [0o4755, 0o2755, 0o640]
    assert os.stat("/etc/passwd").st_uid == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "far").write_text("")
    os.chown(tmp_path / "other" / "far", 70000, 0)
    with pytest.raises(BadInput, match="image x: far belongs to 70000:0"):
        id_maps.shift(str(tmp_path / "other"), id_maps.of(1000000), "image x")


@pytest.fixture
def subordinate(tmp_path, monkeypatch):
    """Files like /etc/subuid and /etc/subgid, to be written."""
    files = (str(tmp_path / "subuid"), str(tmp_path / "subgid"))
    monkeypatch.setattr(id_maps, "FILES", files)

    def write(*texts):
        for path, text in zip(files, texts):
            Path(path).write_text(text)

    return write


def test_ranges_of_ids_never_overlap(subordinate, tmp_path):
    """Lost: who is root in one container owns what lies in the other."""
    one = id_maps.COUNT
    users = f"jo:1:9\nroot:1000000:{3 * one + 9}\nroot:9000000:{one}\n"
    subordinate(users, f"root:1000000:{4 * one}\nroot:1:9000999\n")
    taken = []
    while True:
        first = id_maps.free_range(taken)
        if first is None:
            break
        taken.append((first, one))
    assert [first for first, _count in taken] == [1000000, 1000000 + one, 1000000 + 2 * one]
    # one in the middle is free again; an odd one lies across two
    assert id_maps.free_range([taken[0], taken[2]]) == 1000000 + one
    assert id_maps.free_range([(1000000 + one - 1, 2)]) == 1000000 + 2 * one
    subordinate("", "root:1000000:65536\n")
    assert id_maps.free_range([]) is None


def test_a_container_of_no_claim_keeps_its_ids(tmp_path):
    """Lost: a database that was restored from an older copy gives a container's ids to another one."""
    mapped = "lxc.idmap = u 0 1000000 65536\nlxc.idmap = g 0 2000000 10\n"
    for name, text in (("a", mapped), ("b", "lxc.uts.name = b\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config").write_text(text)
    (tmp_path / "c").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "d" / "config").mkdir(parents=True)
    assert sorted(id_maps.mapped(str(tmp_path))) == [(1000000, 65536), (2000000, 10)]
    assert id_maps.mapped(str(tmp_path / "nowhere")) == []
    (tmp_path / "c" / "config").symlink_to("config")
    with pytest.raises(HeteroError, match=r"c/config: cannot be read .* which ids its container has: correct it"):
        id_maps.mapped(str(tmp_path))


def test_limits_for_the_controllers_that_are_there(tmp_path):
    """A key for a controller that the host has not stops each start; a missing one lets one tenant eat all."""
    one, two, none = (tmp_path / name for name in ("v1", "v2", "none"))
    for name in ("memory", "cpu", "pids"):
        (one / name).mkdir(parents=True)
        (one / name / "cgroup.procs").write_text("")
    two.mkdir()
    (two / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    none.mkdir()
    (none / "cgroup.controllers").write_text("\n")
    assert limits.keys(16384, 8, 99, str(one)) == [
        "lxc.cgroup.memory.limit_in_bytes = 17179869184", "lxc.cgroup.cpu.cfs_quota_us = 800000",
        "lxc.cgroup.pids.max = 99",
    ]  # fmt: skip
    assert limits.keys(16384, 8, 99, str(two)) == [
        "lxc.cgroup2.memory.max = 17179869184", "lxc.cgroup2.cpu.max = 800000 100000", "lxc.cgroup2.pids.max = 99",
    ]  # fmt: skip
    for counts in (one / "memory" / "memory.memsw.limit_in_bytes", two / "init.scope" / "memory.swap.max"):
        counts.parent.mkdir(exist_ok=True)
        counts.touch()
    assert limits.keys(16384, 0, 0, str(one))[1:] == ["lxc.cgroup.memory.memsw.limit_in_bytes = 17179869184"]
    assert limits.keys(16384, 0, 0, str(two))[1:] == ["lxc.cgroup2.memory.swap.max = 0"]
    assert limits.keys(0, 0, 0, str(two)) == []
    assert limits.keys(16384, 8, 99, str(none)) == []
    assert limits.missing(16384, 8, 99, str(none)) == ["memory", "cpu", "pids"]
    assert (limits.keys(0, 0, 0, str(two)), limits.missing(0, 8, 99, str(two))) == ([], [])


def test_a_host_offers_what_it_has_unless_its_file_says_otherwise(tmp_path):
    """A host set up with no numbers would offer nothing, or more than it has."""
    path, meminfo = tmp_path / "host.json", tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       24609000 kB\nMemFree: 1 kB\n")
    path.write_text(json.dumps({"lxcpath": str(tmp_path / "yet" / "to" / "come"), "vcpus": 8, "name": "gpu1"}))
    config = read_config(str(path), str(meminfo))
    assert (config.capacity["memory_mb"], config.capacity["vcpus"], config.name) == (24032, 8, "gpu1")
    assert config.capacity["local_gb"] == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize // 2**30
    path.write_text(json.dumps({"vcpus": "eight"}))
    with pytest.raises(BadInput, match='vcpus: is "eight": give a whole number of 0 or more'):
        read_config(str(path), str(meminfo))


def test_a_host_of_containers_and_guests_says_each_for_itself_and_the_machine_once(tmp_path):
    """Guests on the containers' bridge reach nobody; two databases of one machine give a GPU twice."""
    path = tmp_path / "host.json"
    lxc = {
        "name": "gpu1",
        "bridge": "hetero0",
        "lxcpath": str(tmp_path),
        "memory_mb": None,
        "state_folder": "/srv/state",
    }
    kvm = {"name": "gpu1", "bridge": "hetero1", "memory_mb": 0, "vcpus": 8, "state_folder": "/srv/state"}
    path.write_text(json.dumps({"lxc": lxc, "kvm": kvm, "libvirt_uri": "test:///default", "bridge": "br0"}))
    config = read_config(str(path))
    assert [config.section(kind).bridge for kind in config.offers] == ["hetero0", "hetero1"]
    assert (config.capacity["memory_mb"], config.capacity["vcpus"], config.state_folder) == (0, 8, "/srv/state")
    assert config.kvm.libvirt_uri == "test:///default"
    path.write_text(json.dumps({"lxc": lxc, "kvm": dict(kvm, state_folder="/srv/other")}))
    with pytest.raises(BadInput, match=r"state_folder is '/srv/state' for lxc and '/srv/other' for kvm.*give roles"):
        read_config(str(path))
    assert here(config=str(tmp_path / "nowhere")) == Paths()
    path.write_text(json.dumps({"kvm": dict(kvm, guests_folder="/srv/guests")}))
    assert here(config=str(path)) == Paths(state_db="/srv/state/host.db", guests="/srv/guests")
    assert here("/else/host.db", str(path)).state_db == "/else/host.db"
    path.write_text(json.dumps({"kvm": True}))
    with pytest.raises(BadInput, match="kvm: is true: give a mapping"):
        read_config(str(path))


def test_disk_space_is_that_of_the_folder_where_disks_are(tmp_path, monkeypatch):
    """A host of guests offered what its folder of containers has, where none are."""
    path = tmp_path / "host.json"
    sizes = {str(tmp_path / "lxc"): 40, str(tmp_path / "guests"): 30}
    for folder in sizes:
        os.mkdir(folder)
    found = os.statvfs_result((2**20, 2**20, 0, 0, 0, 0, 0, 0, 0, 255))

    def statvfs(folder):
        return os.statvfs_result((2**20, 2**20, sizes[folder] * 2**10, *found[3:]))

    monkeypatch.setattr(os, "statvfs", statvfs)
    sections = {"lxc": {"lxcpath": str(tmp_path / "lxc")}, "kvm": {"guests_folder": str(tmp_path / "guests")}}
    for offered, expected in ((["lxc"], 40), (["kvm"], 30), (["lxc", "kvm"], 30)):
        path.write_text(json.dumps({kind: sections[kind] for kind in offered}))
        assert read_config(str(path)).capacity["local_gb"] == expected
