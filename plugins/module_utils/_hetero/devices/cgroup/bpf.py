# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bpf(2) for device cgroups, without compiler or library: load, attach, replace, detach and read programs.

Programs are lists of Instruction (instructions.py). v2.py decides which program may be changed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Iterator, Sequence

from ...core.errors import HeteroError
from .instructions import pack, unpack

if TYPE_CHECKING:
    from .instructions import Instruction

#: Machine → number of bpf(2) (asm/unistd.h).
SYSCALLS = {"x86_64": 321, "aarch64": 280}
# linux/bpf.h
PROG_LOAD, PROG_ATTACH, PROG_DETACH, PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, PROG_QUERY = 5, 8, 9, 13, 15, 16
PROG_TYPE_CGROUP_DEVICE, ATTACH_CGROUP_DEVICE = 15, 6
ALLOW_OVERRIDE, ALLOW_MULTI, REPLACE = 1, 2, 4
QUERY_EFFECTIVE = 1
#: Programs at most: BPF_CGROUP_MAX_PROGS (64) for a cgroup, and those of 31 ancestors, which count for it too.
MOST = 64 * 32
LOG = 1 << 16
#: Bytes after the attributes, because a newer kernel may write answers into fields that follow them.
SPARE = 0x100
INFO = 80  # bytes of struct bpf_prog_info up to the end of its name: as old as the call (Linux 4.15)


@lru_cache(maxsize=None)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """Make the system call; return (its result, the attributes afterwards). Raises OSError."""
    machine = platform.machine()
    if machine not in SYSCALLS:
        raise HeteroError(f"bpf(2) is not known on {machine}", "device cgroup", f"use {' or '.join(SYSCALLS)}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes) + SPARE)
    result = _libc().syscall(ctypes.c_long(SYSCALLS[machine]), command, buffer, ctypes.c_uint(len(attributes)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result, buffer.raw


@contextmanager
def closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def load(instructions: Sequence[Instruction], name: str) -> int:
    """Load a program; return its file descriptor. Raises OSError with the verifier's words if it is refused."""
    code = ctypes.create_string_buffer(pack(instructions))
    licence = ctypes.create_string_buffer(b"GPL")
    head = (PROG_TYPE_CGROUP_DEVICE, len(instructions), ctypes.addressof(code), ctypes.addressof(licence))

    def call(level: int, size: int, log: int) -> int:
        return bpf(PROG_LOAD, struct.pack("=IIQQIIQII16s", *head, level, size, log, 0, 0, name.encode()))[0]

    try:
        return call(0, 0, 0)
    except OSError as error:
        if error.errno == errno.EPERM:
            # before Linux 5.11 programs count as locked memory, of which 64 KiB are allowed
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        log = ctypes.create_string_buffer(LOG)
        try:
            return call(1, LOG, ctypes.addressof(log))
        except OSError:
            said = log.value.decode("utf-8", "replace").strip()
            raise OSError(error.errno, f"{error.strerror} {said[-400:]}".strip()) from error


def attach(cgroup: int, program: int, flags: int = ALLOW_MULTI, replace: int = 0) -> None:
    """Attach a program to a cgroup, or put it into the place of another program in one step.

    :param cgroup: descriptor of the cgroup's folder.
    :param program, replace: descriptors of programs; replace 0 is none.
    """
    flags |= REPLACE if replace else 0
    bpf(PROG_ATTACH, struct.pack("=IIIII", cgroup, program, ATTACH_CGROUP_DEVICE, flags, replace))


def detach(cgroup: int, program: int) -> None:
    bpf(PROG_DETACH, struct.pack("=IIIII", cgroup, program, ATTACH_CGROUP_DEVICE, 0, 0))


def query(cgroup: int, effective: bool = False) -> tuple[list[int], int]:
    """Return (ids, flags) of the programs of a cgroup; with `effective` those of its ancestors too.

    :param cgroup: descriptor of its folder.
    """
    count = 64
    while True:
        ids = (ctypes.c_uint32 * count)()
        # query_flags, attach_flags, where the ids go, how many fit
        how = QUERY_EFFECTIVE if effective else 0
        asked = struct.pack("=IIIIQI", cgroup, ATTACH_CGROUP_DEVICE, how, 0, ctypes.addressof(ids), count)
        try:
            answer = bpf(PROG_QUERY, asked)[1]
        except OSError as error:
            if error.errno == errno.ENOSPC and count < MOST:
                count *= 2
                continue
            raise
        flags, _where, found = struct.unpack_from("=IQI", answer, 12)
        return list(ids[:found]), flags


def open_program(number: int) -> int:
    """Return a file descriptor of the program with this id."""
    return bpf(PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))[0]


def info(program: int) -> tuple[int, str, list[Instruction] | None]:
    """Return (id, name, instructions) of a program by its descriptor; None for instructions that the kernel hides."""

    def ask(code: ctypes.Array[ctypes.c_char]) -> bytes:
        """Return the kernel's answer. The instructions that fit go into `code`."""
        buffer = bytearray(INFO)
        struct.pack_into("=I", buffer, 20, len(code))
        struct.pack_into("=Q", buffer, 32, ctypes.addressof(code))
        block = ctypes.create_string_buffer(bytes(buffer), INFO)
        bpf(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", program, INFO, ctypes.addressof(block)))
        return block.raw

    length = struct.unpack_from("=I", ask(ctypes.create_string_buffer(0)), 20)[0]
    code = ctypes.create_string_buffer(length)
    raw = ask(code)
    number = struct.unpack_from("=I", raw, 4)[0]
    given = struct.unpack_from("=Q", raw, 32)[0]
    name = raw[64:].split(b"\0")[0].decode()
    return number, name, unpack(code.raw) if length and given else None
