# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel refuses of device programs, and what changes while they are read; real ones are in test_v2.py."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import EXIT, mov
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import compile_rules
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import V2, Program

GPU = parse("c 195:0 rw")


@pytest.mark.parametrize(
    ("number", "alone", "words"),
    [
        (errno.EPERM, None, "bpf(2) says: Operation not permitted: run as root"),
        (errno.EPERM, "program 7 of /a", "program 7 of /a was attached without ALLOW_MULTI"),
        (errno.EINVAL, None, "this kernel has no device programs"),
        (errno.ENOSYS, None, "this kernel has no device programs"),
        (errno.ENOENT, None, "our program there went away meanwhile"),
        (errno.E2BIG, None, "it has 64 programs"),
        (errno.EIO, "program 7 of /a", "bpf(2) says: Input/output error"),
    ],
)
def test_why_the_kernel_refuses(monkeypatch, number, alone, words):
    """Lost: what to do about it."""
    monkeypatch.setattr(V2, "alone", lambda _cgroup: alone)
    refused = V2("/jackie")._explained(OSError(number, os.strerror(number)))
    assert isinstance(refused, Refused)
    assert str(refused).startswith(f"/jackie: {words}")


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """One whose cgroup has programs by number, each an OSError or what bpf.info says; each reading is counted."""
    one = SimpleNamespace(ids=[], programs={}, readings=[], cgroup=V2(str(tmp_path)))

    def query(_cgroup, effective=False):
        one.readings.append(effective)
        if isinstance(one.ids, OSError):
            raise one.ids
        return list(one.ids), bpf.ALLOW_MULTI

    def opened(number):
        found = one.programs.get(number, FileNotFoundError(errno.ENOENT, "No such file or directory"))
        if isinstance(found, OSError):
            raise found
        return os.open(tmp_path, os.O_RDONLY)

    monkeypatch.setattr(bpf, "query", query)
    monkeypatch.setattr(bpf, "open_program", opened)
    monkeypatch.setattr(bpf, "info", lambda _loaded: one.programs[one.ids[0]])
    return one


def test_a_list_that_never_stays_is_given_up_after_twenty_readings(kernel):
    """Lost: the end of a play beside a program that is swapped all the time; or its answer, if it is swapped once."""
    kernel.ids = [7]
    with pytest.raises(HeteroError, match="its programs changed 20 times while they were read"):
        assert kernel.cgroup.direct
    assert kernel.readings == [False] * 20
    kernel.programs[7] = (7, "foreign", [mov(0, 1), EXIT])
    assert kernel.cgroup.effective == [Program(7, "foreign", [mov(0, 1), EXIT])]
    assert kernel.readings[20:] == [True]
    assert kernel.cgroup.may("c", 195, 0, "rw") is True


@pytest.mark.parametrize(
    ("number", "none"), [(errno.EINVAL, True), (errno.ENOSYS, True), (errno.EPERM, False), (errno.ENOENT, False)]
)
def test_only_a_kernel_without_programs_has_none(kernel, number, none):
    """Lost: each device of a cgroup whose programs may not be listed, which would be called open."""
    kernel.ids = OSError(number, os.strerror(number))
    if none:
        assert kernel.cgroup.direct == []
        assert kernel.cgroup.of("ledger-7") is None
        assert kernel.cgroup.unforbid("ledger-7") is False
    else:
        with pytest.raises(HeteroError):
            assert kernel.cgroup.direct


def test_a_program_that_is_attached_and_not_in_effect_is_told(kernel, monkeypatch, tmp_path):
    """Lost: a GPU that was taken back, and stays open."""
    attached = []
    kernel.ids, kernel.programs[7] = [7], (7, "foreign", [mov(0, 1), EXIT])
    monkeypatch.setattr(bpf, "load", lambda instructions, name: os.open(tmp_path, os.O_RDONLY))
    monkeypatch.setattr(bpf, "attach", lambda *files, **how: attached.append(how))
    assert kernel.cgroup.forbid([GPU], "ledger-7") == 7
    assert attached == [{}]
    monkeypatch.setattr(V2, "effective", [])
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(HeteroError, match=f"program 7 of {tmp_path}: was attached, and is not in effect"):
        kernel.cgroup.only([GPU], "ledger-7")
    assert len(os.listdir("/proc/self/fd")) == before


def test_how_a_program_is_called():
    """Lost: by which number it is found with bpftool."""
    assert str(Program(7, "", None)) == "program 7 (no name)"
    assert str(Program(7, "lxc", None)) == "program 7 (lxc)"
    assert Program(7, "", None).own is None
    assert Program(7, "", []).own is None
    assert Program(7, "", compile_rules("forbid", [GPU], bytes(8))).own == ("forbid", [GPU], bytes(8))


def test_reading_and_making_a_node_are_two_questions():
    """Lost: a device whose node may be made and that may not be opened, which would be called open."""
    program = Program(7, "", compile_rules("forbid", [GPU], bytes(8)))
    assert [program.may("c", 195, 0, access) for access in ("rwm", "m", "rw", "r")] == [False, True, False, False]
    compared = set()
    assert program.may("c", 238, 0, "rw", compared=compared)
    assert 195 in compared


def test_which_program_shuts_others_out_is_said_of_the_nearest(monkeypatch, tmp_path):
    """Lost: whose program is to be attached otherwise; of an ancestor's the wrong one would be named."""
    for folder in ("", "a", "a/b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "cgroup.procs").touch()
    flags = {"a": ([7, 8], 0), "": ([9], 0)}

    def query(cgroup, _effective=False):
        folder = os.path.relpath(os.readlink(f"/proc/self/fd/{cgroup}"), tmp_path)
        return flags.get("" if folder == "." else folder, ([], 0))

    monkeypatch.setattr(bpf, "query", query)
    assert V2(str(tmp_path / "a/b")).alone() == f"program 7 of {tmp_path}/a"
    flags["a"] = ([7], bpf.ALLOW_MULTI)
    assert V2(str(tmp_path / "a/b")).alone() is None
    flags.clear()
    assert V2(str(tmp_path / "a/b")).alone() is None
