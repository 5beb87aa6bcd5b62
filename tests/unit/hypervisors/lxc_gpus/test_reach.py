# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a container gets with a GPU, by its device cgroup, its nodes and its rights. If these fail, a GPU that a
container can open is called closed and given to somebody else, or one that it cannot is kept from everybody.

Tests hypervisors/libvirt/attachment.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import Paths
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import attachment
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import open_rights
from ansible_collections.hetero.compute.tests.in_time import in_time
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system

NODE = SimpleNamespace(kind="c", major=195, minor=0, number=("c", 195, 0), path="/dev/nvidia0")
GPU = SimpleNamespace(address="0000:05:00.0", nodes=[NODE], drm_nodes=[])


class Cgroup:
    """One that allows these kinds of access to every device, or to the GPU alone."""

    def __init__(self, access, every):
        self.access, self.every = access, every

    def may(self, kind, major, minor, access):
        return access in self.access and (self.every or (kind, major, minor) == NODE.number)


def test_a_guest_that_is_down_is_whose_its_device_may_be(monkeypatch):
    """Lost: a guest's GPU, to a container, while libvirt does not know the guest, whose folder is here."""
    monkeypatch.setattr(open_rights.domains, "holders", lambda pci: ({"0000:05:00.0": ["win"]}, {}))
    monkeypatch.setattr(open_rights, "only_by_folder", lambda pci: {"0000:06:00.0": ["lin"], "0000:05:00.0": ["lin"]})
    live = open_rights.Live(())
    for address, name in (("0000:05:00.0", "win"), ("0000:06:00.0", "lin")):
        assert live.doubt(address, "ml-8") == open_rights.domains.STARTS.format(name=name)
    assert live.doubt("0000:07:00.0", "ml-8") is None


@pytest.mark.parametrize(
    ("access", "every", "there", "mknod", "state"),
    [
        ("", True, True, True, open_rights.CLOSED),
        ("m", True, True, True, open_rights.CLOSED),
        ("r", True, True, False, open_rights.OPEN),
        ("w", True, True, False, open_rights.OPEN),
        ("r", False, False, False, open_rights.OPEN),
        ("rm", True, False, True, open_rights.OPEN),
        ("rm", True, False, False, open_rights.NODE_ONLY),
        ("r", True, False, True, open_rights.NODE_ONLY),
        ("wm", True, False, True, open_rights.OPEN),
    ],
    ids=str,
)
def test_how_far_it_gets(monkeypatch, access, every, there, mknod, state):
    monkeypatch.setattr(open_rights, "can_mknod", lambda pid: mknod)
    monkeypatch.setattr(open_rights.device_nodes, "look", lambda container, path, pid: NODE.number if there else None)
    cgroup = Cgroup(access, every)
    found, why = open_rights._how_far("box", 1, cgroup, open_rights.allows_unknown(cgroup), GPU)
    assert found == state, why


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process fewer rights")
@pytest.mark.parametrize(
    ("within", "may"),
    [([], True), (["setpriv", "--bounding-set=-mknod"], False), (["unshare", "--user"], False)],
    ids=["root", "without CAP_MKNOD", "in a user namespace"],
)
def test_who_may_make_nodes(within, may):
    """Who may makes a node of any GPU that its device cgroup leaves open."""
    argv = [*within, "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        assert open_rights.can_mknod(process.pid) is may
        process.stdin.close()


def test_an_init_that_calls_itself_unable_may_still_make_nodes():
    """Lost: a GPU that a container can open by a node of its own, to an init whose name is a line of its status."""
    naming = "import sys; open('/proc/self/comm', 'wb').write(b'a\\rCapBnd:\\t0'); print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", naming]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        assert open_rights.can_mknod(process.pid)
        process.stdin.close()


def test_one_that_leaves_for_another_program_for_ever_makes_no_nodes(tmp_path):
    """Lost: each look at the host's containers, which waits in the kernel for one init."""
    with own_file_system.holding(tmp_path, (1, 5), "leaving") as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        time.sleep(0.3)  # for which it is on its way
        assert in_child(lambda: open_rights.can_mknod(process.pid), Deadline(30), "look", "") is False


def test_a_domain_is_known_by_what_its_devices_are_allocated_to():
    """Lost: a card that a guest has: whoever holds it would be taken for a container that ended."""
    assert attachment.holder_of("ml-9") == f"{open_rights.DOMAIN}ml-9" == "domain:ml-9"


def test_words_that_results_and_tables_have():
    """Lost: what playbooks compare; the number that no driver has must be the last one that there can be."""
    assert (open_rights.OPEN, open_rights.NODE_ONLY, open_rights.CLOSED) == ("open", "node-only", "closed")
    assert open_rights.UNKNOWN == ("c", (1 << 12) - 1, (1 << 20) - 1)
    assert open_rights.NO_GPU == 253, "below it are GPUs, above it what the driver keeps for itself"


def test_a_program_of_any_name_may_be_looked_at():
    """Lost: all looks at GPUs, for a program whose name is no UTF-8 text."""
    mine = f"/proc/{os.getpid()}/comm"
    with open(mine, "rb") as file:
        before = file.read()
    try:
        with open(mine, "wb") as file:
            file.write(b"\xff\xfe")
        assert open_rights.can_mknod(os.getpid()) in (True, False)
    finally:
        with open(mine, "wb") as file:
            file.write(before.strip())


class Box:
    """A container that is started anew as often as it is asked for its init."""

    name, thing, defined = "ml", "container ml", True

    def __init__(self, *pids):
        self.pids = list(pids)

    @property
    def init_pid(self):
        return self.pids.pop(0) if len(self.pids) > 1 else self.pids[0]

    def get(self, _key):
        return ""

    running_item = get


@pytest.mark.parametrize(
    ("pids", "failing", "seen"),
    [
        ([None], 0, []),
        ([1], 0, [1]),
        ([1, None], 1, [1]),
        ([1, 2], 1, [1, 2]),
        ([1, 1], 1, None),
        ([1, 2, 3, 4, 5, 6], 4, [1, 2, 3, 4, 5]),
        ([*range(1, 99)], 99, None),
    ],
)
@pytest.mark.parametrize("error", [HeteroError("ended"), FileNotFoundError(), ProcessLookupError()], ids=type)
def test_one_that_is_started_anew_is_looked_at_anew(monkeypatch, pids, failing, seen, error):
    """Lost: a GPU to who asks while a neighbour ends or reboots; or a look that a neighbour's root keeps going."""
    asked = []

    def look(_container, pid, gpus):
        asked.append(pid)
        if len(asked) <= failing:
            raise error
        return ["far"]

    monkeypatch.setattr(open_rights, "reach_of", look)
    if seen is None:
        with pytest.raises(type(error)):
            open_rights._reach_now(Box(*pids), [GPU], True)
        assert len(asked) == (1 if pids == [1, 1] else 5)
    else:
        assert open_rights._reach_now(Box(*pids), [GPU], True) == (["far"] if len(seen) > failing else [])
        assert asked == seen


def test_of_those_elsewhere_only_what_they_have_counts(monkeypatch):
    """Lost: a GPU, as a container of another folder, which was never ours, could open all of them."""
    asked = []
    monkeypatch.setattr(open_rights.folders, "in_use", lambda: ["/ours", "/theirs"])
    monkeypatch.setattr(open_rights.liblxc, "running", lambda lxcpath: {"/ours": ["a", "b"], "/theirs": ["c"]}[lxcpath])
    monkeypatch.setattr(open_rights.liblxc, "Container", lambda name, lxcpath, library: Box(7))
    monkeypatch.setattr(open_rights, "has", lambda container, pid, gpus: ["its own"])
    monkeypatch.setattr(open_rights, "reach_of", lambda container, pid, gpus: asked.append(gpus) or [len(asked)])
    assert open_rights.look(["/ours"], [GPU]).reaches == (1, 2, 3)
    assert asked == [[GPU], [GPU], ["its own"]]


@pytest.mark.parametrize(
    ("wild", "state", "node", "nodes", "found"),
    [
        (False, open_rights.OPEN, False, [NODE], True),
        (False, open_rights.CLOSED, True, [NODE], False),
        (False, open_rights.NODE_ONLY, True, [NODE], False),
        (False, open_rights.OPEN, True, [], False),
        (True, open_rights.OPEN, False, [NODE], False),
        (True, open_rights.OPEN, True, [NODE], True),
    ],
)
def test_what_one_has(monkeypatch, wild, state, node, nodes, found):
    """Lost: a container's GPU to a table that begins anew; or all GPUs to one whose rule opens every one."""
    gpu = SimpleNamespace(address="0000:05:00.0", nodes=nodes, drm_nodes=[])
    asked = []
    view = SimpleNamespace(may=lambda *words: asked.append(words) or wild)
    monkeypatch.setattr(open_rights, "of_container", lambda pid, name: SimpleNamespace(look=lambda: view))
    monkeypatch.setattr(
        open_rights, "reach_of", lambda box, pid, gpus: [open_rights.Reach("h", "ml", gpu.address, state, "")]
    )
    monkeypatch.setattr(open_rights.device_nodes, "look", lambda box, path, pid: NODE.number if node else None)
    assert open_rights.has(Box(7), 7, [gpu]) == ([gpu] if found else [])
    assert asked == [("c", 195, 253, "r")]


def test_who_lives(monkeypatch, tmp_path):
    """Lost: the GPU of a guest, an instance, or a container whose disk is not mounted, as of one that is no more."""
    paths = Paths(domains="/nowhere", running_domains=str(tmp_path), guests=str(tmp_path / "guests"))
    live = open_rights.Live((open_rights.Reach("/a/b#1", "b", "x", open_rights.CLOSED, ""),), pci=paths)
    (tmp_path / "vm1.xml").write_text("")
    (tmp_path / "guests/vm3").mkdir(parents=True)
    (tmp_path / "guests/vm3/domain.xml").write_text("")
    (tmp_path / "lxc/ml").mkdir(parents=True)
    defined = {"ml": "id1", "off": None}
    monkeypatch.setattr(open_rights.liblxc, "Container", lambda name, folder: SimpleNamespace(name=name))
    # without a configuration one has none
    keys = {name: f"{tmp_path}/lxc/{name}#{defined[name]}" for name in defined}
    monkeypatch.setattr(open_rights.identity, "key_by_id", lambda box: keys.get(box.name))
    lives = {
        "/a/b#1": True,
        "domain:vm1": True,
        "domain:vm2": False,
        "domain:vm3": True,
        "instance:ml": False,
        "kvm:vm1": True,
        "/nowhere/at/all/ml#id1": True,
        f"{tmp_path}/lxc/ml#id1": True,
        f"{tmp_path}/lxc/ml#id2": False,
        f"{tmp_path}/lxc/no#x": False,
    }
    assert {holder: live.is_there(holder) for holder in lives} == lives
    monkeypatch.setattr(open_rights.monitors, "owner", lambda name, folder: {"slow": 0, "eves": 1000}.get(name))
    runs = ["/a/b#1", "/a/b#2", "/x/slow#1", "/x/eves#1", "/a/bc#1", "domain:vm1", "instance:b"]
    assert [holder for holder in runs if live.runs(holder)] == ["/a/b#1", "/a/b#2", "/x/slow#1"]


def test_a_container_whose_file_system_the_fstab_has_and_that_is_not_mounted_may_live(monkeypatch, tmp_path):
    """Lost: the GPU of a container to another, because the point where its file system is mounted is a folder too."""
    disk = tmp_path / "disk"
    (disk / "lxc").mkdir(parents=True)
    folders.mark(str(disk / "lxc"))  # of before it was put on a disk of its own
    (tmp_path / "fstab").write_text(f"# x {tmp_path}\n\nswap none swap sw 0 0\n/dev/sda1 / ext4 defaults 0 1\n")
    monkeypatch.setattr(folders, "FSTAB", str(tmp_path / "fstab"))
    live, holder = open_rights.Live(()), f"{disk}/lxc/trainer#id1"
    assert not live.is_there(holder)
    with open(tmp_path / "fstab", "a", encoding="ascii") as table:
        table.write(f"/dev/sdb1 {disk} ext4 nofail 0 2\n")
    assert live.is_there(holder)
    monkeypatch.setattr(folders.os.path, "ismount", lambda point: True)
    assert not live.is_there(holder)


def test_an_empty_folder_says_of_no_container_that_it_is_no_more(tmp_path):
    """Lost: the GPU of a container to another, where no fstab names its file system, such as an unmounted pool's."""
    live, holder = open_rights.Live(()), f"{tmp_path}/trainer#id1"
    (tmp_path / "lxc-monitord.log").write_text("of a start by hand")
    assert live.is_there(holder)
    folders.mark(str(tmp_path))
    assert not live.is_there(holder), "the last one is gone, and its folder says that it was here"
    (tmp_path / folders.MARK).unlink()  # of an earlier release
    assert live.is_there(holder)
    (tmp_path / "neighbour").mkdir()
    assert not live.is_there(holder)


def test_who_can_use_a_gpu_now(monkeypatch):
    """Lost: whom to ask for a GPU: who can open it, who still has it open, and what keeps it for guests."""
    one = SimpleNamespace(address="1", nodes=[NODE], drm_nodes=[], driver="nvidia")
    kept = SimpleNamespace(address="2", nodes=[], drm_nodes=[], driver="vfio-pci")
    free = SimpleNamespace(address="3", nodes=[], drm_nodes=[SimpleNamespace(major=None)], driver="pci-stub")
    far = [
        open_rights.Reach("h", "ml", "1", open_rights.OPEN, ""),
        open_rights.Reach("h2", "b", "1", open_rights.CLOSED, ""),
    ]
    far.append(open_rights.Reach("h", "ml", "2", open_rights.CLOSED, ""))
    live = open_rights.Live(tuple(far))
    monkeypatch.setattr(open_rights, "look", lambda lxcpaths, gpus: live)
    used = [("a", None), (None, "win"), (None, None), ("ml", None)]
    users = {NODE.number: [SimpleNamespace(container=box, domain=domain) for box, domain in used]}
    said = {
        address: [tuple(vars(holder).values()) for holder in holders]
        for address, holders in open_rights.live_holders([one, kept, free], [], users).items()
    }
    assert said == {
        "1": [("container", "a"), ("container", "ml"), ("libvirt", "win")],
        "2": [("vfio", "vfio-pci")],
        "3": [("vfio", "pci-stub")],
    }
    assert live.open("1") == far[:1]
    assert live.of("h") == {"1": far[0], "2": far[2]}


def test_all_nodes_of_a_gpu_are_tried(monkeypatch):
    """Lost: a GPU that is open by its graphics node alone."""
    other = SimpleNamespace(kind="c", major=226, minor=0, number=("c", 226, 0), path="/dev/dri/card0")
    unloaded = SimpleNamespace(kind="c", major=None, minor=1, number=("c", None, 1), path="/dev/x")
    gpu = SimpleNamespace(address="0000:05:00.0", nodes=[unloaded, other], drm_nodes=[NODE])
    assert open_rights.own_nodes(gpu) == [other, NODE]
    monkeypatch.setattr(open_rights.device_nodes, "look", lambda *given: None)
    assert open_rights._how_far("box", 1, Cgroup("r", False), False, gpu)[0] == open_rights.OPEN
    monkeypatch.setattr(open_rights.identity, "key_of", lambda box: box.key)
    assert open_rights.key_or_path(SimpleNamespace(key="/lxc/ml#1", folder="/lxc/ml")) == "/lxc/ml#1"
    assert open_rights.key_or_path(SimpleNamespace(key=None, folder="/lxc/ml")) == "/lxc/ml"


@pytest.mark.parametrize(("config", "there"), [("pipe", True), ("loop", True), ("another's", False), ("none", False)])
def test_whose_configuration_cannot_be_read_may_have_its_gpus(tmp_path, config, there):
    """Lost: the GPUs of a container, which the table gives to the next who asks, or the answer to who waits for it."""
    folder = tmp_path / "box"
    folder.mkdir()
    if config == "pipe":
        os.mkfifo(folder / "config")
    elif config == "loop":
        (folder / "config").symlink_to("config")
    elif config == "another's":
        (folder / "config").write_text(f"# hetero.compute: id {'1' * 32} of folder {folder.stat().st_ino}\n")
    with in_time():
        assert open_rights.Live(()).is_there(f"{folder}#{'0' * 32}") is there
