# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that the kernel lists, where no test can have as many. All else is beside the real kernel in test_v2.py."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import struct
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import EXIT, mov, pack

#: bpf(2)'s query: target, type, query flags, attach flags, where the ids go, how many fit.
QUERY = "=IIIIQI"


class Kernel:
    """One whose cgroup and its ancestors have so many programs, or that refuses to say so."""

    def __init__(self, programs, refusal=None):
        self.programs, self.refusal, self.calls = range(1, programs + 1), refusal, 0

    def bpf(self, command, attributes):
        self.calls += 1
        *_target, where, room = struct.unpack_from(QUERY, attributes)
        if self.refusal:
            raise OSError(self.refusal, "refused")
        if room < len(self.programs):
            raise OSError(errno.ENOSPC, "No space left on device")
        ids = (ctypes.c_uint32 * room).from_address(where)
        ids[: len(self.programs)] = list(self.programs)
        answer = bytearray(attributes)
        struct.pack_into("=IQI", answer, 12, bpf.ALLOW_MULTI, where, len(self.programs))
        return 0, bytes(answer)


@pytest.fixture
def kernel(monkeypatch):
    def played(*how):
        kernel = Kernel(*how)
        monkeypatch.setattr(bpf, "bpf", kernel.bpf)
        return kernel

    return played


@pytest.mark.parametrize("programs", [0, 64, 65, 300, bpf.MOST])
def test_as_many_programs_as_there_are(kernel, programs):
    """Lost: what a container deep below others may open, when all of them have programs."""
    kernel(programs)
    assert bpf.query(0) == (list(range(1, programs + 1)), bpf.ALLOW_MULTI)


@pytest.mark.parametrize(("how", "number"), [((1, errno.EBADF), errno.EBADF), ((bpf.MOST + 1,), errno.ENOSPC)])
def test_what_more_room_does_not_help_is_said(kernel, how, number):
    """Lost: why nothing can be told, or its end: room that doubles for ever."""
    one = kernel(*how)
    with pytest.raises(OSError) as error:  # noqa: PT011 (its number is what counts)
        bpf.query(0)
    assert (error.value.errno, one.calls) == (number, 1 if number == errno.EBADF else 6)


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 321), ("aarch64", 280)])
def test_the_call_of_each_machine(monkeypatch, machine, number):
    """Lost: each container on a host of that kind; or the memory of who asks, to a kernel that answers more."""
    calls = []

    def syscall(called, command, buffer, size):
        calls.append((called.value, command, size.value, ctypes.sizeof(buffer)))
        buffer[0] = b"n"
        return 7

    monkeypatch.setattr(bpf.platform, "machine", lambda: machine)
    monkeypatch.setattr(bpf, "_libc", lambda: SimpleNamespace(syscall=syscall))
    result, answer = bpf.bpf(16, b"question")
    assert (result, answer[:8]) == (7, b"nuestion")
    assert calls == [(number, 16, 8, 8 + 256)]


@pytest.mark.parametrize(("result", "refused"), [(-1, True), (0, False), (3, False)])
def test_what_the_kernel_refuses_is_an_error(monkeypatch, result, refused):
    """Lost: why nothing was changed; or what was done, to an error that was none."""
    monkeypatch.setattr(bpf, "_libc", lambda: SimpleNamespace(syscall=lambda *_words: result))
    monkeypatch.setattr(bpf.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EPERM)
    if refused:
        with pytest.raises(PermissionError, match="Operation not permitted"):
            bpf.bpf(5, b"question")
    else:
        assert bpf.bpf(5, b"question")[0] == result


def test_a_machine_that_is_not_known_is_told(monkeypatch):
    """Lost: which machines there are; another call of that kernel would be made."""
    monkeypatch.setattr(bpf.platform, "machine", lambda: "riscv64")
    with pytest.raises(HeteroError, match=r"bpf\(2\) is not known on riscv64: use x86_64 or aarch64"):
        bpf.bpf(5, b"question")


def test_the_kernels_own_words():
    """Lost: device programs: linux/bpf.h numbers what is asked and how it is attached."""
    assert (bpf.PROG_LOAD, bpf.PROG_ATTACH, bpf.PROG_DETACH, bpf.PROG_GET_FD_BY_ID) == (5, 8, 9, 13)
    assert (bpf.OBJ_GET_INFO_BY_FD, bpf.PROG_QUERY, bpf.QUERY_EFFECTIVE) == (15, 16, 1)
    assert (bpf.PROG_TYPE_CGROUP_DEVICE, bpf.ATTACH_CGROUP_DEVICE) == (15, 6)
    assert (bpf.ALLOW_OVERRIDE, bpf.ALLOW_MULTI, bpf.REPLACE) == (1, 2, 4)


def open_files():
    gc.collect()  # what earlier tests left open is closed at any time
    return len(os.listdir("/proc/self/fd"))


def test_what_the_verifier_says_is_told():
    """Lost: why a kernel does not take a program, which nobody can find out otherwise."""
    before = open_files()
    with pytest.raises(OSError, match="R0 !read_ok") as refused:
        bpf.load([EXIT], "bad")
    assert refused.value.errno in (errno.EACCES, errno.EINVAL)
    assert refused.value.strerror.startswith(os.strerror(refused.value.errno))
    assert open_files() == before


def test_a_program_is_read_back_as_it_was_loaded():
    """Lost: whose a program is, and what it says; or a file of the process, each time."""
    before, program = open_files(), [mov(0, 1), mov(2, 5), EXIT]
    with bpf.closing(bpf.load(program, "abc_123")) as loaded:
        number, name, _instructions = bpf.info(loaded)
        assert name == "abc_123"
        with bpf.closing(bpf.open_program(number)) as again:
            assert bpf.info(again)[:2] == (number, "abc_123")
    assert open_files() == before
    with pytest.raises(OSError, match="descriptor"):
        bpf.info(before + 1000)


@pytest.mark.parametrize("kept", [False, True])
def test_instructions_that_the_kernel_keeps_back_are_none(monkeypatch, kept):
    """Lost: the difference between a program that cannot be read and one of so many zeros."""
    program = pack([mov(0, 1), EXIT])

    def answer(_command, attributes):
        _fd, size, where = struct.unpack("=IIQ", attributes)
        assert size == 80
        block = (ctypes.c_char * size).from_address(where)
        room, code = struct.unpack_from("=I", block, 20)[0], struct.unpack_from("=Q", block, 32)[0]
        struct.pack_into("=IIQI", block, 0, 15, 42, 0, 0)
        struct.pack_into("=I", block, 20, len(program))
        struct.pack_into("=8s", block, 64, b"foreign")
        if kept:
            struct.pack_into("=Q", block, 32, 0)
        elif room >= len(program):
            ctypes.memmove(code, program, len(program))
        return 0, b""

    monkeypatch.setattr(bpf, "bpf", answer)
    assert bpf.info(3) == (42, "foreign", None if kept else [mov(0, 1), EXIT])


def test_a_good_program_is_loaded_at_once_and_as_any_other(monkeypatch):
    """Lost: half of the time of each change of rules; or a program, to stricter rules that nobody asked for."""
    asked, really = [], bpf.bpf

    def call(command, attributes):
        asked.append((command, struct.unpack("=IIQQIIQII16s", attributes)))
        return really(command, attributes)

    monkeypatch.setattr(bpf, "bpf", call)
    os.close(bpf.load([mov(0, 1), EXIT], "abc"))
    ((command, (kind, length, _code, _licence, *more)),) = asked
    assert (command, kind, length) == (bpf.PROG_LOAD, bpf.PROG_TYPE_CGROUP_DEVICE, 2)
    assert more == [0, 0, 0, 0, 0, b"abc".ljust(16, b"\0")]


def test_how_a_program_is_attached_and_taken_away(monkeypatch):
    """Lost: each program beside it, or the moment without a program when one is replaced."""
    asked = []
    monkeypatch.setattr(bpf, "bpf", lambda command, attributes: asked.append((command, attributes)))
    bpf.attach(3, 4)
    bpf.attach(3, 4, replace=5)
    bpf.attach(3, 4, 0)
    bpf.detach(3, 4)
    assert asked == [
        (8, struct.pack("=IIIII", 3, 4, 6, 2, 0)),
        (8, struct.pack("=IIIII", 3, 4, 6, 2 | 4, 5)),
        (8, struct.pack("=IIIII", 3, 4, 6, 0, 0)),
        (9, struct.pack("=IIIII", 3, 4, 6, 0, 0)),
    ]
