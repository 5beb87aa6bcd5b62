# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are no descriptors: real processes with real sockets and rings, and what older kernels say of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import hidden_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.hidden_files import Hiding, hiding
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.paths import Paths

#: io_uring_setup, io_uring_register and its IORING_REGISTER_FILES are 425, 427 and 2 on all machines.
HIDES = """
import array, ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
how = sys.argv[1]
file = os.open("/dev/zero", os.O_RDWR)
kept = []

def ring(*files):
    made = libc.syscall(425, 4, (ctypes.c_char * 120)())
    if made < 0:
        print("none", flush=True)
        sys.exit()
    if files:
        assert libc.syscall(427, made, 2, (ctypes.c_int * len(files))(*files), len(files)) == 0
    # 3, 1: PROT_READ | PROT_WRITE, MAP_SHARED
    assert libc.mmap(None, ctypes.c_size_t(4096), 3, 1, made, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
    return made

def send(to, *files):
    to.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])

def hide():
    if how.startswith("sent"):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM if "datagram" in how else socket.SOCK_STREAM)
        kept.extend(pair)
        send(pair[0], file, file)
    elif how.startswith("not accepted"):
        listening, calling = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        kept.extend([listening, calling])
        listening.bind("\\0hetero-%d" % os.getpid())
        listening.listen()
        calling.connect(listening.getsockname())
        send(calling, file, file)
    elif how == "registered":
        ring(file, -1, file)
    elif how == "no descriptor":
        os.close(ring(file))
    elif how == "nothing":
        ring()
        kept.extend(socket.socketpair())
        kept[-1].sendall(b"x")
        listening = socket.socket()
        listening.listen()
        kept.append(listening)

def alone():
    assert libc.unshare(0x400) == 0  # CLONE_FILES
    hide()
    print("hidden", flush=True)
    sys.stdin.read()

if how.endswith("by a thread"):
    thread = threading.Thread(target=alone)
    thread.start()
    thread.join()
else:
    hide()
    os.close(file)
    print("hidden", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hides():
    """The pid of a process that hides files so."""
    started = []

    def start(how):
        process = subprocess.Popen([sys.executable, "-c", HIDES, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        said = process.stdout.readline()
        if said == b"none\n":
            pytest.skip("this kernel makes no io_uring: set kernel.io_uring_disabled to 0")
        assert said == b"hidden\n"
        return process.pid

    yield start
    for process in started:
        process.communicate(timeout=600)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("sent", r"2 files sent to its socket \d+"),
        ("sent as a datagram", r"2 files sent to its socket \d+"),
        ("sent by a thread", r"2 files sent to its socket \d+"),
        ("not accepted", r"2 files sent to its socket \d+"),
        ("registered", r"3 files registered with its io_uring \d+"),
        ("no descriptor", "an io_uring without a descriptor"),
        ("nothing", None),
    ],
)
def test_who_hides_files_is_found(hides, how, words):
    """Lost: a GPU that goes to the next tenant while the last one has it where no descriptor is; or each GPU's taking
    back, for a process with a socket or a ring that holds nothing."""
    pid = hides(how)
    found = hiding([pid])
    command = Path(f"/proc/{pid}/comm").read_text().strip()
    assert [(one.pid, one.command) for one in found] == ([(pid, command)] if words else []), found
    assert not words or re.fullmatch(words, found[0].hides)


@pytest.mark.parametrize(
    ("release", "told", "said"),
    [
        ("6.18.44-fc", "UserFiles:\t4\n    0: /dev/null\n", ["4 files registered with its io_uring 7"]),
        ("5.10.0", "UserFiles:\t1\n    0: x\nUserFiles:\t0\n", ["1 file registered with its io_uring 7"]),
        ("5.10.0", "pos:\t0\nUserFiles:\t0\nUserBufs:\t0\n", []),
        ("6.18.44-fc", "pos:\t0\n", ["io_uring 7, which does not say what it has"]),
        ("5.6.0", "pos:\t0\n", ["io_uring 7, which does not say what it has"]),
        ("odd", "pos:\t0\n", ["io_uring 7, which does not say what it has"]),
        ("5.4.0-150-generic", "pos:\t0\n", []),
    ],
)
def test_a_ring_that_does_not_say_what_it_has_may_have_it(monkeypatch, release, told, said):
    """Lost: a GPU behind a ring that its tenant keeps busy, which then says nothing; or each GPU's taking back, on a
    kernel whose rings never say anything."""
    monkeypatch.setattr(hidden_files.os, "uname", lambda: SimpleNamespace(release=release))
    assert hidden_files._of_ring("7", told) == said


@pytest.mark.parametrize(("told", "said"), [("pos:\t0\nscm_fds: 1\n", 1), ("scm_fds: 0\n", 0), ("pos:\t0\n", 0)])
def test_a_kernel_that_says_nothing_of_sockets_is_believed(told, said):
    """Lost: each GPU's taking back on a kernel before 5.9."""
    found = hidden_files._of_socket("5", told, f"/proc/{os.getpid()}")
    assert found == ["1 file sent to its socket 5"][:said]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("not accepted", r"connections to its socket \d+ that are not accepted"),
        ("not accepted by a thread", r"(socket \d+, which may have what was sent to it(, )?)+"),
        ("nothing", None),
    ],
)
def test_a_kernel_that_does_not_say_what_was_sent_before_it_is_accepted(hides, monkeypatch, how, words):
    """Lost: a GPU, on Debian 12, to who sends it to a socket that listens, and accepts that once it was given on."""
    monkeypatch.setattr(hidden_files.os, "uname", lambda: SimpleNamespace(release="6.1.0-18-amd64", machine="x86_64"))
    real = hidden_files.text_of
    monkeypatch.setattr(hidden_files, "text_of", lambda *parts: re.sub(r"(scm_fds:).*", r"\1 0", real(*parts) or ""))
    found = hiding([hides(how)])
    assert bool(found) == bool(words)
    assert not words or re.fullmatch(words, found[0].hides)


def test_a_descriptor_that_is_closed_before_it_is_asked_for_has_no_callers(monkeypatch):
    """Lost: the look at a whole container, to a socket that was closed in that moment."""
    monkeypatch.setattr(hidden_files.os, "uname", lambda: SimpleNamespace(release="6.1.0-18-amd64", machine="x86_64"))
    with open("/dev/null") as other:
        for descriptor in (1 << 20, other.fileno()):
            assert hidden_files._of_socket(str(descriptor), "scm_fds: 0\n", f"/proc/{os.getpid()}") == []


def test_one_that_ended_hides_nothing_and_no_other(tmp_path):
    """Lost: who hides a file, behind a process or a descriptor that went while it was looked at."""
    for pid in (101, 103):
        folder = tmp_path / "proc" / str(pid)
        (folder / "fdinfo").mkdir(parents=True)
        (folder / "fd").mkdir()
        for name in ("4", "5"):
            (folder / "fd" / name).symlink_to(f"socket:[{name}]")
        (folder / "fd" / "6").symlink_to(hidden_files.RING)
        (folder / "fdinfo" / "5").write_text("scm_fds: 3\n")
        (folder / "maps").write_bytes(b"a-b rw-p 0 fe:01 55 /odd\xff\na-b rw-s 0 0:10 9 /x anon_inode:[io_uring]\n")
    (tmp_path / "proc" / "103" / "maps").unlink()
    said = "3 files sent to its socket 5"
    found = hiding([103, 102, 101], Paths.below(str(tmp_path)))
    assert found == [Hiding(101, "?", said), Hiding(103, "?", said)]


@pytest.mark.parametrize(
    ("link", "maps", "said"),
    [
        ("/dmabuf:", "", "a device's memory, by descriptor 5"),
        ("/dmabuf:heap", "", "a device's memory, by descriptor 5"),
        ("/x", "7f0-7f1 rw-s 100000000 00:0a 1                         /dmabuf:\n", "a device's memory, mapped"),
        ("/x", "7f0-7f1 rw-s 100000000 00:0a 1                         /x/dmabuf:\n", None),
        ("/x/dmabuf:", "", None),
    ],
)
def test_memory_of_a_device_is_held_without_the_device(tmp_path, link, maps, said):
    """Lost: a GPU's memory, which a tenant writes and reads after it was taken back: as Linux 6.1 shows vgem's."""
    folder = tmp_path / "proc" / "101"
    for name in ("fd", "fdinfo"):
        (folder / name).mkdir(parents=True)
    (folder / "fd" / "5").symlink_to(link)
    (folder / "maps").write_text(maps)
    assert hiding([101], Paths.below(str(tmp_path))) == ([Hiding(101, "?", said)] if said else [])


def test_what_may_not_be_looked_at_may_be_it(monkeypatch):
    """Lost: a GPU in a process that the kernel does not show; or its taking back, to an error that names none."""

    def forbidden(*_arguments):
        raise PermissionError

    monkeypatch.setattr(hidden_files, "_by_descriptors", forbidden)
    assert [(one.pid, one.hides) for one in hiding([os.getpid()])] == [(os.getpid(), "files that cannot be looked at")]


def test_a_descriptor_that_is_closed_meanwhile_hides_no_other(tmp_path, monkeypatch):
    """Lost: that a GPU is open, by a process that opens and closes files all the time."""
    for folder in ("fd", "fdinfo"):
        (tmp_path / folder).mkdir()
    (tmp_path / "fd" / "5").symlink_to("socket:[77]")
    (tmp_path / "fdinfo" / "5").write_text("scm_fds: 2\n")
    monkeypatch.setattr(hidden_files.os, "listdir", lambda path: ["4", "5"])
    assert hidden_files._by_descriptors(str(tmp_path), set()) == ["2 files sent to its socket 5"]


def test_the_folders_of_this_machine():
    """Lost: each GPU that is open, to a look into a folder that is not there."""
    assert Paths() == Paths.below("/")
