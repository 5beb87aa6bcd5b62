# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that the kernel lists, where no test can have as many. All else is beside the real kernel in test_v2.py."""

from __future__ import annotations

import ctypes
import errno
import struct

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.cgroup import bpf

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
