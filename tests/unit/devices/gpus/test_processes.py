# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a device: real processes with real device nodes, and a /proc of containers and domains in a folder."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import paths, processes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.paths import Paths
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.processes import Process, holders
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system

#: /dev/zero by its numbers, which everybody may open.
ZERO = ("c", 1, 5)
GPU = ("c", 195, 0)
HOLDING = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
if sys.argv[2] in ("by a thread alone", "by a thread that is left"):
    def hold():
        assert sys.argv[2].endswith("left") or libc.unshare(0x400) == 0  # CLONE_FILES
        file = os.open(sys.argv[1], os.O_RDWR)
        while sys.argv[2].endswith("left") and "State:\\tZ" not in open(f"/proc/{os.getpid()}/status").read():
            pass
        os.unlink(sys.argv[1])
        print("holding", flush=True)
        sys.stdin.read()
        os._exit(0)
    thread = threading.Thread(target=hold)
    thread.start()
    if sys.argv[2].endswith("left"):
        libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit(2), of this thread
    thread.join()
file = os.open(sys.argv[1], os.O_RDWR)
if sys.argv[2] in ("mapped", "mapped behind a line"):
    # not by module mmap, which keeps a file of its own open; 3, 2: PROT_READ | PROT_WRITE, MAP_PRIVATE
    mmap = ctypes.CDLL(None).mmap
    mmap.restype = ctypes.c_void_p
    if sys.argv[2].endswith("line"):
        # below it a file whose name is a line of the kernel's: the node is what is mapped here, which is this file
        node, at = os.fstat(file), 0x10000000
        disk = f"{os.major(node.st_dev):02x}:{os.minor(node.st_dev):02x}"
        name = os.path.join(os.path.dirname(sys.argv[1]), f"a\\r{at:x}-{at + 4096:x} r--p 0 {disk} {node.st_ino}")
        plain = os.open(name, os.O_RDWR | os.O_CREAT)
        os.ftruncate(plain, 4096)
        assert mmap(ctypes.c_void_p(at), ctypes.c_size_t(4096), 1, 0x12, plain, ctypes.c_long(0)) == at
        os.close(plain)
    assert mmap(None, ctypes.c_size_t(4096), 3, 2, file, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
    os.close(file)
os.unlink(sys.argv[1])
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holding(tmp_path):
    """A process that holds a node of /dev/zero's numbers, by a name of its own that is gone meanwhile."""
    started = []

    def start(how):
        path = tmp_path / "innocent"
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(*ZERO[1:]))
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout.readline() == b"holding\n"
        return process

    yield start
    for process in started:
        process.communicate(timeout=600)


WAYS = ["open", "mapped", "mapped behind a line", "by a thread alone", "by a thread that is left"]


@pytest.mark.parametrize("how", WAYS)
def test_a_process_that_holds_a_device_is_found_by_its_numbers(holding, how):
    """A revoke closes nothing: a GPU that is mapped, or open by another name, would be given to the next tenant."""
    process = holding(how)
    assert process.pid in [held.pid for held in holders([ZERO])[ZERO]]
    assert [held.pid for held in holders([ZERO], pids=[process.pid])[ZERO]] == [process.pid]
    others = [("c", 195, 0), ("b", 1, 5)]
    assert process.pid not in [held.pid for found in holders(others).values() for held in found]
    process.communicate(timeout=600)
    assert process.pid not in [held.pid for held in holders([ZERO])[ZERO]]


@pytest.mark.parametrize("how", ["open", "mapped", "broken", "silent"])
def test_an_accounts_own_file_system_hides_nothing_and_holds_nobody_up(tmp_path, how):
    """Lost: a GPU that somebody uses, as free; or each look at GPUs, to one file that never says what it is."""
    with own_file_system.holding(tmp_path, ZERO[1:], how) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        found = in_child(lambda: [held.pid for held in holders([ZERO])[ZERO]], Deadline(30), "look", "")
        assert process.pid in found


def test_who_leaves_for_another_program_holds_no_look_up(tmp_path, monkeypatch):
    """Lost: every verb that asks who has a GPU, which waits in the kernel for ever; or the GPU, as free."""
    monkeypatch.setattr(processes, "LOOK_TIME", 1.0)
    monkeypatch.setattr(processes, "LOOK_AT_ALL", 1.0)
    with own_file_system.holding(tmp_path, ZERO[1:], "leaving") as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        time.sleep(0.3)  # for which it is on its way

        def said_of(pids):
            with pytest.raises(HeteroError) as said:  # in a child, for a wait that ends never
                in_child(lambda: len(holders([ZERO], pids=pids)), Deadline(30), "look", "")
            assert "its open files could not be looked at within 1 s" in str(said.value)
            return str(said.value)

        assert f"process {process.pid} (" in said_of([process.pid])
        end = Deadline(120)  # those of other tests are named as well, while they last
        while f"process {process.pid} (" not in said_of(None):
            assert not end.passed


def test_what_takes_too_long_to_look_at_is_not_taken_for_nothing(monkeypatch, holding):
    """Lost: a GPU among a million files; or a container, which stands still until all have been looked at."""
    process = holding("open")
    monkeypatch.setattr(processes, "LOOK_TIME", 0.3)
    real = processes._held

    def slow(folder, known):
        time.sleep(30 if folder.endswith(str(process.pid)) else 0)
        return real(folder, known)

    monkeypatch.setattr(processes, "_held", slow)
    begun = time.monotonic()
    with pytest.raises(TimedOut, match="end it, or its container, and run this again") as said:
        holders([ZERO], pids=[process.pid])
    assert time.monotonic() - begun < 20
    assert said.value.facts["pid"] == process.pid


def test_a_look_that_ends_before_any_process_names_none():
    """Lost: an error that can be read, where the machine is too busy to begin."""
    with pytest.raises(TimedOut) as said:
        processes.look(lambda begin: time.sleep(30), seconds=0.2)
    assert (said.value.thing, said.value.facts) == ("process 0 (?)", dict(pid=0, command="?"))


def test_a_driver_that_is_not_loaded_has_no_holders():
    """Its nodes have no major, and detaching goes on without it."""
    assert holders([("c", None, 0)]) == {}


class Proc:
    """Processes as /proc shows them; their files are links to device nodes, as those of /proc lead to them."""

    def __init__(self, root):
        self.root = root
        self.paths = Paths.below(str(root))
        (root / "dev").mkdir()

    def device(self, name, minor, kind=stat.S_IFCHR):
        path = self.root / "dev" / name
        os.mknod(path, kind | 0o666, os.makedev(195, minor))
        return path

    def process(self, pid, cgroup, *files, command="python3"):
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "cgroup").write_text(f"{cgroup}\n")
        (folder / "comm").write_text(f"{command}\n")
        (folder / "maps").write_text("")
        for number, file in enumerate(files):
            (folder / "fd" / str(number)).symlink_to(file)
        return folder


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def test_a_holder_is_named_by_its_container_or_domain(proc):
    """Who is asked to stop a program must know in which container to look for it."""
    gpu0, gpu1 = proc.device("nvidia0", 0), proc.device("nvidia1", 1)
    proc.process("self", "0::/user.slice/session-1.scope")
    proc.process(101, "0::/lxc.payload.ml-7/system.slice/train.service", "/dev/null", gpu0, gpu1)
    proc.process(102, "12:devices:/lxc/ml-8\n0::/", gpu1, command="jupyter")
    proc.process(103, r"0::/machine.slice/machine-qemu\x2d3\x2dwin\x2d11.scope/libvirt/emulator", gpu1, command="qemu")
    proc.process(104, "0::/system.slice/dcgm.service", gpu1, command="dcgm")
    proc.process(105, "0::/lxc.payload.ml-9", "/dev/null", proc.device("disk", 1, stat.S_IFBLK))
    first, second = ("c", 195, 0), ("c", 195, 1)
    ml7 = Process(101, "python3", "ml-7")
    assert holders([first, second], proc.paths) == {
        first: [ml7],
        second: [
            ml7,
            Process(102, "jupyter", "ml-8"),
            Process(103, "qemu", None, "win-11"),
            Process(104, "dcgm"),
        ],
    }


def test_on_a_host_that_is_a_container_itself_the_inner_name_counts(proc):
    """A nested host would else take all its containers for one, its own."""
    gpu = proc.device("nvidia0", 0)
    proc.process("self", "0::/lxc.payload.gpu1/system.slice/ssh.service")
    proc.process(101, "0::/lxc.payload.gpu1/lxc.payload.ml-7/init.scope", gpu)
    proc.process(102, "0::/lxc.payload.gpu1/system.slice/dcgm.service", gpu)
    assert [held.container for held in holders([GPU], proc.paths)[GPU]] == ["ml-7", None]


def test_a_process_that_ended_meanwhile_holds_nothing(proc):
    """Hundreds of processes end while all are looked at."""
    gpu = proc.device("nvidia0", 0)
    proc.process("self", "0::/")
    proc.process(101, "0::/lxc.payload.ml-7", gpu)
    (proc.process(102, "0::/lxc.payload.ml-8", gpu) / "maps").unlink()
    (proc.process(103, "0::/lxc.payload.ml-9") / "fd" / "3").symlink_to("/nowhere")
    assert [held.pid for held in holders([GPU], proc.paths)[GPU]] == [101]


def test_a_container_that_cannot_be_looked_at_is_told(proc):
    """Taken for one that holds nothing, its GPU would be given to the next."""
    gpu = proc.device("nvidia0", 0)
    proc.process("self", "0::/")
    proc.process(101, "0::/lxc.payload.ml-7", gpu)
    (proc.root / "proc" / "101" / "maps").chmod(0)
    proc.root.chmod(0o755)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            os.chroot(proc.root)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            holders([GPU], Paths.below("/"))
        except HeteroError as error:
            said = str(error)
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as answer:
        assert answer.read() == (
            "process 101 (python3): its open files cannot be looked at: run this as root of the host"
        )


@pytest.mark.parametrize(
    ("user", "owner", "kept"),
    [(0, {}, False), (0, {"container": "box"}, True), (0, {"domain": "ml-9"}, True), (1, {}, True), (1000, {}, True)],
)
def test_who_may_not_be_looked_at_is_only_left_out_where_the_kernel_itself_forbids_it(monkeypatch, user, owner, kept):
    """Lost: a GPU that is given to two; or each look at GPUs, for one guarded process of the system."""
    monkeypatch.setattr(processes, "_process", lambda pid, folder, own: Process(7, "init", **owner))
    monkeypatch.setattr(processes, "_held_by_all", forbidden)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if not kept:
        assert processes._seen("7", "/proc/7", [], {}) == set()
        return
    with pytest.raises(HeteroError, match=r"process 7 \(init\): its open files cannot be looked at: run this as root"):
        processes._seen("7", "/proc/7", [], {})


def forbidden(*_arguments):
    raise PermissionError


class Ending:
    """A file of /proc whose process ends between open and read."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None

    def read(self):
        raise ProcessLookupError(3, "No such process")


@pytest.mark.parametrize("held", [forbidden, lambda *_: {("c", os.makedev(*GPU[1:]))}], ids=["forbidden", "held"])
def test_a_process_that_ends_before_it_is_asked_whose_it_is_fails_no_look(monkeypatch, proc, held):
    """Lost: a GPU's taking back, for a process of somebody else's that ended in that moment."""
    gpu = proc.device("nvidia0", 0)
    proc.process("self", "0::/")
    proc.process(101, "0::/lxc.payload.ml-7", gpu)
    monkeypatch.setattr(processes, "_held_by_all", held)
    real = open

    def opened(path, *more, **options):
        return Ending() if path.endswith("101/cgroup") else real(path, *more, **options)

    monkeypatch.setattr(paths, "open", opened, raising=False)
    assert holders([GPU], proc.paths) == {GPU: []}


def test_one_that_ended_hides_no_other(monkeypatch, proc):
    """Lost: who holds a GPU, behind a process, a thread, a file or a mapping that went while it was looked at."""
    gpu = proc.device("nvidia0", 0)
    proc.process("self", "0::/")
    (proc.process(101, "0::/lxc.payload.ml-6", gpu) / "maps").unlink()
    (proc.process(100, "0::/lxc.payload.ml-5", gpu) / "cgroup").unlink()
    # by pid, not by letter
    proc.process(1000, "0::/lxc.payload.ml-7", "/nowhere", gpu)
    proc.process(202, "0::/lxc.payload.ml-8", gpu)
    assert [held.pid for held in holders([GPU], proc.paths)[GPU]] == [202, 1000]
    # the first thread and another one ended, a third holds it
    alone = proc.process(303, "0::/lxc.payload.ml-9")
    folders = [str(proc.root / "proc" / name) for name in ("404", "202")]
    monkeypatch.setattr(processes, "apart", lambda folder: folders if folder == str(alone) else [])
    assert [held.pid for held in holders([GPU], proc.paths)[GPU]] == [202, 303, 1000]


def test_a_disk_is_no_gpu_of_the_same_numbers(proc):
    """Lost: who holds a block device, which other cards show theirs by; or it is taken for a character device's."""
    proc.process("self", "0::/")
    proc.process(101, "0::/lxc.payload.ml-6", proc.device("disk", 0, stat.S_IFBLK))
    block = ("b", 195, 0)
    assert [(number, len(held)) for number, held in holders([GPU, block], proc.paths).items()] == [(GPU, 0), (block, 1)]


def test_mapped_files_are_told_apart_by_their_file_system_too(proc):
    """Lost: who has a GPU mapped: a library of the same number on another disk was looked at before."""
    proc.process("self", "0::/")
    folder = proc.process(101, "0::/lxc.payload.ml-6")
    (folder / "map_files").mkdir()
    lines = []
    for number, (disk, target) in enumerate((("fe:01", "/dev/null"), ("fe:02", proc.device("nvidia0", 0)))):
        (folder / "map_files" / f"a{number}-b{number}").symlink_to(target)
        lines.append(f"a{number}-b{number} rw-p 00000000 {disk} 55                         /odd".encode() + b"\xff\n")
    (folder / "maps").write_bytes(b"".join(lines))
    assert [held.pid for held in holders([GPU], proc.paths)[GPU]] == [101]


def test_a_cgroup_of_another_name_is_no_container_of_that_name(proc):
    """Lost: who holds a GPU: a container's root may call a cgroup of its own what it likes."""
    proc.process("self", "0::/")
    proc.process(101, "0::/lxc.payload.ml-6/a\r/lxc.payload.ml-7/lxc.payload.ml-7", proc.device("nvidia0", 0))
    assert [held.container for held in holders([GPU], proc.paths)[GPU]] == ["ml-6"]


@pytest.mark.parametrize(
    ("cgroup", "container", "domain"),
    [
        ("0::/user.slice/user-1000.slice/user@1000.service/lxc.payload.ml-7", None, None),
        (r"0::/user.slice/user-1000.slice/user@1000.service/machine-qemu\x2d3\x2dwin.scope", None, None),
        ("4:devices:/user.slice\n1:name=systemd:/user.slice/user-1000.slice/a/lxc/ml-7", None, None),
        ("0::/user.slice/user-0.slice/session-1.scope/lxc.payload.ml-7", "ml-7", None),
        (r"0::/lxc.payload.ml-6/machine-qemu\x2d3\x2dwin.scope", "ml-6", None),
        (r"0::/machine.slice/machine-qemu\x2d3\x2dwin.scope/libvirt", None, "win"),
    ],
)
def test_an_accounts_process_is_in_no_container_by_the_name_of_its_cgroup(proc, cgroup, container, domain):
    """Lost: that somebody of the host has a container's GPU open, and who: it would count as the container, or a guest.
    """
    proc.process("self", "0::/")
    proc.process(101, cgroup, proc.device("nvidia0", 0))
    assert holders([GPU], proc.paths)[GPU] == [Process(101, "python3", container, domain)]


def test_who_has_no_name_is_shown_by_its_pid(proc):
    """Lost: who holds a GPU, as the kernel does not say what its program is called."""
    proc.process("self", "0::/")
    (proc.process(101, "0::/lxc.payload.ml-6", proc.device("nvidia0", 0)) / "comm").unlink()
    assert holders([GPU], proc.paths)[GPU] == [Process(101, "?", "ml-6")]


@pytest.mark.parametrize(
    ("machine", "number"),
    [("x86_64", 312), ("aarch64", 272), ("riscv64", 272), ("ppc64le", 354), ("s390x", 343), ("mips", None)],
)
@pytest.mark.parametrize("answer", [0, 1, -1])
def test_the_kernel_is_asked_whether_two_threads_share_their_files(monkeypatch, machine, number, answer):
    """Lost: what a thread alone has open; by another call's number the kernel would do who knows what."""
    asked = []
    libc = SimpleNamespace(syscall=lambda *words: asked.append([word.value for word in words]) or answer)
    monkeypatch.setattr(processes, "_libc", libc)
    monkeypatch.setattr(processes.os, "uname", lambda: SimpleNamespace(machine=machine))
    assert processes._share_files(7, 8) is (number is not None and answer == 0)
    # KCMP_FILES of linux/kcmp.h
    assert asked == ([] if number is None else [[number, 7, 8, 2, 0, 0]])
