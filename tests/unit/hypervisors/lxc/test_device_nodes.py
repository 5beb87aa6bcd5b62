# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes in containers whose root works against them, and what open() says there.

Tests hypervisors/lxc/kernel.py, hypervisors/lxc/open_trial.py, hypervisors/lxc/private_nodes.py,
hypervisors/lxc/roots.py.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import threading
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.kernel_text import mount_table
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    device_nodes,
    kernel,
    open_trial,
    private_nodes,
)
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import (
    CAPS,
    CTL,
    FIVE,
    GPU0,
    GPU1,
    Node,
    attach,
)


def make(boxes, container, *nodes):
    return device_nodes.make(container, *nodes, base=boxes.private)


def inside(container, path):
    """A path of the container on the host."""
    return f"/proc/{container.init_pid}/root{path}"


@pytest.mark.parametrize("unprivileged", [False, True])
def test_made_allowed_opened_and_taken_back(boxes, unprivileged):
    """No access without attach, none left after detach, and none to the GPU that was not asked for."""
    box = boxes.make(unprivileged=unprivileged)
    numbers = {GPU0: ("c", 195, 0), GPU1: ("c", 195, 1)}
    assert set(open_trial.reaches(box, numbers.values(), base=boxes.private).values()) == {errno.EPERM}
    assert make(boxes, box, GPU0, CAPS) == [GPU0.path, CAPS.path]
    assert open_trial.opens(box, GPU0.path) == errno.EPERM
    box.allow("c 195:0 rw")
    assert open_trial.opens_each(box, [GPU0.path, GPU1.path]) == {GPU0.path: errno.ENXIO, GPU1.path: errno.ENOENT}
    found = open_trial.reaches(box, numbers.values(), base=boxes.private)
    assert found == {numbers[GPU0]: errno.ENXIO, numbers[GPU1]: errno.EPERM}
    assert make(boxes, box, GPU0, CAPS) == []
    assert attach(box, "sh", "-c", f"exec 3<>{GPU0.path}") != 0
    box.deny("c 195:0 rw")
    assert open_trial.opens(box, GPU0.path) == errno.EPERM
    assert device_nodes.remove(box, GPU0.path, CAPS.path) == [GPU0.path, CAPS.path]
    assert device_nodes.look(box, GPU0.path) is None
    assert not os.path.lexists(inside(box, GPU0.path))
    assert device_nodes.remove(box, GPU0.path, CAPS.path) == []


@pytest.mark.parametrize("unprivileged", [False, True])
def test_owner_and_mode_are_as_on_the_host_and_a_change_inside_stays_inside(boxes, unprivileged):
    """A render node opens for its group only; and chmod in a container must not open the host's node to everybody."""
    box = boxes.make(unprivileged=unprivileged)
    node = Node("/dev/dri/renderD128", 226, 128, mode=0o660, gid=44)
    make(boxes, box, node)
    status = os.stat(inside(box, node.path))
    shift = 200000 if unprivileged else 0
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o660, shift, 44 + shift)
    assert attach(box, "chmod", "606", node.path) == 0
    assert stat.S_IMODE(os.stat(inside(box, node.path)).st_mode) == 0o606
    assert make(boxes, box, node) == []


@pytest.mark.parametrize("known", ["openat2", "chroot", "busy"])
def test_links_of_the_containers_root_lead_nowhere_else(boxes, box, tmp_path, monkeypatch, known):
    """A tenant that makes /dev, or a node's name, a link has the host's root change or remove its files; on a host
    where others mount at the same moment, which openat2 does not go through with, an attach ends in an error."""
    if known != "openat2":

        def missing(*_arguments):
            raise OSError({"chroot": errno.ENOSYS, "busy": errno.EAGAIN}[known], "no openat2 now")

        monkeypatch.setattr(kernel, "open_in_root", missing)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "nvidia0").write_text("the host's")
    depth = "/.." * 12
    links = f"ln -s {depth}{victim} /dev/nvidia-caps && ln -s {victim}/nvidia0 /dev/nvidia0"
    assert attach(box, "sh", "-c", links) == 0
    with pytest.raises(HeteroError, match="dev/nvidia-caps is no folder in it"):
        make(boxes, box, CAPS)
    assert device_nodes.remove(box, CAPS.path, GPU0.path) == []
    assert make(boxes, box, GPU0) == [GPU0.path]
    assert os.listdir(victim) == ["nvidia0"]
    assert (victim / "nvidia0").read_text() == "the host's"
    assert device_nodes.look(box, GPU0.path) == ("c", 195, 0)
    # a link that stays inside is followed as the container does it
    assert attach(box, "sh", "-c", "rm /dev/nvidia-caps && mkdir -p /tmp/caps && ln -s /tmp/caps /dev/nvidia-caps") == 0
    make(boxes, box, CAPS)
    assert os.stat(inside(box, "/tmp/caps/nvidia-cap1")).st_rdev == os.makedev(239, 1)


def test_no_way_out_through_the_hosts_proc(boxes, tmp_path):
    """A host's /proc that was bound in leads to the host's root by /proc/PID/root, past chroot too."""
    box = boxes.make("lxc.mount.entry = /proc hostproc none bind,create=dir 0 0")
    assert attach(box, "ln", "-s", f"/hostproc/{os.getpid()}/root{tmp_path}", "/dev/nvidia-caps") == 0
    assert os.path.isdir(inside(box, f"/hostproc/{os.getpid()}/root{tmp_path}"))
    with pytest.raises(HeteroError, match="is no folder in it"):
        make(boxes, box, CAPS)
    assert not os.path.lexists(tmp_path / "nvidia-cap1")


def test_nodev(boxes):
    """A node on a mount that opens no devices is there and is of no use: the user sees EACCES from the library."""
    box = boxes.make("lxc.autodev = 0\nlxc.mount.entry = tmpfs dev tmpfs nodev,create=dir 0 0")
    box.allow("c 195:0 rw")
    assert attach(box, "mknod", GPU0.path, "c", "195", "0") == 0
    assert open_trial.opens(box, GPU0.path) == errno.EACCES
    assert make(boxes, box, GPU0) == [GPU0.path]
    assert open_trial.opens(box, GPU0.path) == errno.ENXIO
    assert make(boxes, box, GPU0) == []


def test_its_root_unmounts_or_replaces_the_node(boxes):
    """A node that its container took away, or made another device, is noticed and mended, whatever file is there."""
    box = boxes.make(unprivileged=True)
    make(boxes, box, GPU0)
    assert attach(box, "umount", GPU0.path) == 0
    assert os.path.exists(inside(box, GPU0.path))
    assert device_nodes.look(box, GPU0.path) is None
    assert make(boxes, box, GPU0) == [GPU0.path]
    assert attach(box, "mount", "-o", "bind", "/dev/null", GPU0.path) == 0
    assert device_nodes.look(box, GPU0.path) == ("c", 1, 3)
    assert make(boxes, box, GPU0) == [GPU0.path]
    assert device_nodes.look(box, GPU0.path) == ("c", 195, 0)
    assert device_nodes.remove(box, GPU0.path) == [GPU0.path]
    assert attach(box, "ls", "/dev/null") == 0


def test_a_tenants_own_file_stays(boxes, box):
    """What is no device node is the tenant's."""
    assert attach(box, "sh", "-c", f"echo mine >{GPU0.path}; mkdir {GPU1.path}") == 0
    assert device_nodes.remove(box, GPU0.path, GPU1.path) == []
    assert attach(box, "cat", GPU0.path) == 0
    with pytest.raises(HeteroError, match=r"/dev/nvidia1 cannot be made or removed in it \(Is a directory\)"):
        make(boxes, box, GPU1)


def test_dropped_mknod_and_seccomp(boxes, tmp_path):
    """A container that may not make nodes gets them all the same; lxc-attach, as the blueprint has it, cannot."""
    profile = tmp_path / "seccomp"
    profile.write_text("2\ndenylist\nmknod errno 1\nmknodat errno 1\n")
    for config in ("lxc.cap.drop = mknod", f"lxc.seccomp.profile = {profile}"):
        box = boxes.make(config)
        with pytest.raises(HeteroError, match="mknod"):
            device_nodes.make_inside(box, GPU0)
        assert make(boxes, box, GPU0) == [GPU0.path]
        box.allow("c 195:0 rw")
        assert open_trial.opens(box, GPU0.path) == errno.ENXIO


def test_as_the_blueprint_made_them(boxes, box):
    """The blueprint's way is there for who asks for it, and is checked."""
    device_nodes.make_inside(box, GPU0, CAPS)
    assert device_nodes.look(box, CAPS.path) == ("c", 239, 1)
    assert make(boxes, box, GPU0, CAPS) == []


def test_opened_with_the_containers_powers_only(boxes):
    """A proof by the host's root would say that a node opens which the container's root may not open."""
    box = boxes.make("lxc.cap.keep = mknod sys_admin setuid setgid")
    make(boxes, box, Node(GPU0.path, 195, 0, mode=0o600, uid=1000))
    box.allow("c 195:0 rw")
    assert open_trial.opens(box, GPU0.path) == errno.EACCES
    assert open_trial.reaches(box, [("c", 195, 0)], base=boxes.private) == {("c", 195, 0): errno.ENXIO}


def test_a_process_with_threads_is_forked_with_care(boxes, box, monkeypatch):
    """A lock that another thread holds is held for ever in a child that was not forked: the proof would hang."""
    make(boxes, box, GPU0)
    forked = []
    monkeypatch.setattr(os, "fork", lambda real=os.fork: forked.append(1) or real())
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert open_trial.opens(box, GPU0.path) == errno.EPERM
    finally:
        stop.set()
        thread.join()
    assert forked


def test_an_open_that_hangs_is_given_up(boxes, box, monkeypatch):
    """A driver that waits for ever must not take the play with it."""
    assert attach(box, "mknod", "/tmp/pipe", "p") == 0
    monkeypatch.setattr(open_trial, "OPEN_TIME", 0.3)
    monkeypatch.setattr(os, "O_NONBLOCK", 0)
    with pytest.raises(TimedOut, match=r"took longer than 0\.3 s"):
        open_trial.opens(box, "/tmp/pipe", os.O_RDONLY)


def test_a_dev_that_never_answers_holds_nobody_up(boxes, tmp_path, monkeypatch):
    """Lost: every verb of the host that looks at its containers, which waits where no signal ends it."""
    monkeypatch.setattr(device_nodes, "LOOK_TIME", 1.0)
    box = boxes.make(unprivileged=True)
    pid = box.init_pid

    def asked():
        seen = [device_nodes.look_each(box, [GPU0.path, GPU1.path], pid) for _time in range(3)]
        with pytest.raises(TimedOut, match="its file system does not answer, where it has its devices"):
            device_nodes.make(box, GPU0, base=boxes.private, pid=pid)
        with pytest.raises(TimedOut):
            device_nodes.remove(box, GPU0.path, pid=pid)
        return seen

    with own_file_system.holding(tmp_path, (1, 5), "silent", pid) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        assert in_child(asked, Deadline(30), "look", "") == [{GPU0.path: None, GPU1.path: None}] * 3


def test_who_waits_for_a_dev_that_never_answers_is_one(boxes, tmp_path, monkeypatch):
    """Lost: the host's memory and processes, to a tenant's file system: each look left a process that nothing ends."""
    monkeypatch.setattr(device_nodes, "LOOK_TIME", 0.5)
    box = boxes.make(unprivileged=True)
    pid = box.init_pid

    def looked():
        device_nodes.look(box, GPU0.path, pid)
        return os.getpid()

    def removed():
        with suppress(TimedOut):
            device_nodes.remove(box, GPU0.path, pid=pid)

    with own_name() as name:
        with own_file_system.holding(tmp_path, (1, 5), "silent", pid) as process:
            if process is None:
                pytest.skip("this kernel has no FUSE")
            before = waiting(name)
            for one in (looked, looked, removed, looked, removed):
                in_child(one, Deadline(30), "look", "")
            assert len(waiting(name) - before) == 1
        end = Deadline(30)
        while waiting(name) - before:
            assert not end.passed
            end.nap()


@contextmanager
def own_name():
    """Give this process a name of its own, which its children and theirs inherit: other tests' come and go."""
    comm = Path("/proc/thread-self/comm")
    former, name = comm.read_text().strip(), f"look-{os.getpid()}"
    comm.write_text(name)
    try:
        yield name
    finally:
        comm.write_text(former)


def waiting(name):
    """The processes of that name that are still there."""
    found = set()
    for one in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            found |= {one} if Path("/proc", one, "comm").read_text().strip() == name else set()
    return found


@pytest.mark.parametrize("silent", [False, True])
def test_a_node_that_is_bound_there_is_seen_where_the_look_takes_too_long(boxes, tmp_path, monkeypatch, silent):
    """Lost: a GPU, given to another while a container has it, on a host that has too much to do for a moment."""
    box = boxes.make(unprivileged=True)
    device_nodes.make(box, GPU0, base=boxes.private)
    pid = box.init_pid
    assert device_nodes.look(box, GPU0.path, pid) == ("c", GPU0.major, GPU0.minor)
    monkeypatch.setattr(device_nodes, "LOOK_TIME", 1.0 if silent else 0.0)

    def asked():
        return [device_nodes.look(box, node.path, pid) for node in (GPU0, GPU1)]

    with own_file_system.holding(tmp_path, (1, 5), "silent", pid) if silent else nullcontext(box) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        assert in_child(asked, Deadline(30), "look", "") == [["c", GPU0.major, GPU0.minor], None]


def test_a_dev_that_answers_until_a_node_is_made_holds_nobody_up(boxes, tmp_path, monkeypatch):
    """Lost: a GPU's giving, for ever, with the host's locks, to a tenant who answers the look before it."""
    monkeypatch.setattr(device_nodes, "LOOK_TIME", 2.0)
    monkeypatch.setattr(device_nodes, "MAKE_TIME", 2.0)
    monkeypatch.setattr(open_trial, "OPEN_TIME", 2.0)
    box = boxes.make(unprivileged=True)
    pid, lock = box.init_pid, tmp_path / "lock"

    def asked():
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            os.kill(process.server, signal.SIGUSR1)
            for call in (
                lambda: device_nodes.make(box, GPU0, base=boxes.private, pid=pid),
                lambda: open_trial.opens(box, GPU0.path, pid=pid),
            ):
                with pytest.raises(TimedOut, match="work inside it took longer than 2 s"):
                    call()

    with own_file_system.holding(tmp_path, (1, 5), "later", pid) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        assert device_nodes.look(box, GPU1.path, pid) is None
        in_child(asked, Deadline(30), "look", "")
        with open(lock, "w") as free:  # who waits there for ever has it not
            fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_who_becomes_root_where_nothing_is_answered_has_no_locks(boxes, tmp_path, monkeypatch):
    """Lost: every verb of a container, also its end, to an init that has a file system of its own as its root."""
    monkeypatch.setattr(open_trial, "OPEN_TIME", 2.0)
    box, lock = boxes.make(unprivileged=True), tmp_path / "lock"
    box.allow("c 10:229 rw")
    tops = mounts.alone_in(box.init_pid, box.name).values()

    def asked():
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(TimedOut, match="work inside it took longer than 2 s"):
                open_trial.reaches(box, [GPU0.number], pid=process.pid, base=boxes.private)

    with own_file_system.holding(tmp_path, (1, 5), "inside", box.init_pid, tops) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        in_child(asked, Deadline(30), "look", "")
        with open(lock, "w") as free:  # who waits there for ever has it not
            fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_tenant_takes_no_turn_of_who_looks(boxes):
    """Lost: that a container has a GPU, and its taking back, to a tenant who keeps what looks take their turns by."""
    box = boxes.make(unprivileged=True)
    make(boxes, box, GPU0)
    pid = box.init_pid
    with ExitStack() as stack:
        for name in ("ns/mnt", "ns/user", "root"):  # which it can open, too
            space = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
            stack.callback(os.close, space)
            fcntl.flock(space, fcntl.LOCK_EX)
        assert device_nodes.look_each(box, [GPU0.path], pid) == {GPU0.path: ("c", 195, 0)}


def test_what_is_bound_there_is_not_sought_behind_a_link(tmp_path, monkeypatch):
    """Lost: a verb of the host, to a tenant who puts a link to a file system of its own where the kernel said that what
    it bound lies."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        os.mknod(tmp_path / name / "node", stat.S_IFCHR | 0o600, os.makedev(195, 0))
    (tmp_path / "link").symlink_to(tmp_path / "b")
    own = max((line for line in mount_table() if f"{tmp_path}/".startswith(line.point)), key=lambda one: len(one.point))
    below = own.root.rstrip("/") + str(tmp_path)[len(own.point.rstrip("/")) :]
    for folder, found in (("a", ("c", 195, 0)), ("link", None), ("none", None)):
        line = own._replace(root=f"{below}/{folder}/node", point=GPU0.path)
        monkeypatch.setattr(
            private_nodes, "mount_table", lambda pid=None, line=line: [line] if pid else mount_table()
        )
        assert private_nodes.bound_at(7, GPU0.path) == found


def test_a_stopped_container_is_said_to_be_so(boxes):
    """The way out is in the text."""
    box = boxes.make(start=False)
    for call in (lambda: make(boxes, box, GPU0), lambda: open_trial.opens(box, GPU0.path)):
        with pytest.raises(HeteroError, match=f"{box.name} .*: does not run: start it"):
            call()


def test_private_nodes_follow_their_numbers(boxes):
    """After a driver got another major, the node of before would open somebody else's device."""
    box = boxes.make(start=False)
    path = private_nodes.ensure(box, CTL, boxes.private)
    assert private_nodes.numbers_below(box, boxes.private) == {CTL.path: ("c", 195, 255)}
    before = os.stat(path).st_ino
    assert os.stat(private_nodes.ensure(box, CTL, boxes.private)).st_ino == before
    private_nodes.ensure(box, Node(CTL.path, 240, 255), boxes.private)
    private_nodes.ensure(box, GPU0, boxes.private)
    assert private_nodes.numbers_below(box, boxes.private) == {GPU0.path: ("c", 195, 0), CTL.path: ("c", 240, 255)}
    private_nodes.forget(box, boxes.private)
    private_nodes.forget(box, boxes.private)
    assert private_nodes.numbers_below(box, boxes.private) == {}
    assert not os.path.exists(private_nodes.folder(box, boxes.private))


@pytest.mark.parametrize("unprivileged", [False, True])
def test_five_nodes_cost_no_more_processes_than_one(boxes, monkeypatch, unprivileged):
    """Each costs milliseconds: attaching a GPU must take less than LXD needs for one device (make bench)."""
    forked = []
    monkeypatch.setattr(os, "waitpid", lambda *given, real=os.waitpid: forked.append(given) or real(*given))
    box = boxes.make(unprivileged=unprivileged)
    forked.clear()
    make(boxes, box, *FIVE)
    assert len(forked) == 1
    open_trial.opens_each(box, [node.path for node in FIVE])
    device_nodes.remove(box, *[node.path for node in FIVE])
    assert len(forked) == 3
