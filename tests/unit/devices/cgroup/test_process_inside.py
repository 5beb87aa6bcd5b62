# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel tells a process inside a real device cgroup of cgroup v1. If these fail, a device is called open or
closed by guess.
"""

from __future__ import annotations

import errno
import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import process_inside
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.process_inside import inside
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse


def test_reading_and_writing_and_making_a_node_are_asked_one_after_the_other(v1):
    """Lost: all of a device at once, the way back from a mistake."""
    assert v1.v1.may("c", 195, 0, "rwm")
    assert v1.v1.may("b", 43, 0, "m")
    v1.v1.deny(parse("c 195:0 m"))
    assert not v1.v1.may("c", 195, 0, "rwm")
    assert v1.v1.may("c", 195, 0, "rw")


def test_all_devices_are_asked_by_one_process_each_for_itself(v1, monkeypatch):
    """Lost: five nodes of a GPU in one millisecond; or one's answer for another's."""
    v1.v1.deny(parse("c 195:1 w"))
    v1.v1.deny(parse("b 195:0 rwm"))
    forks, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    devices = ["c 195:0 rwm", "c 195:1 rw", "c 195:1 r", "b 195:0 r", "c 195:0 rwm", "b 195:1 m", "c 195:1 m"]
    assert inside(v1.v1.path, [parse(text) for text in devices]) == [True, False, True, False, True, True, True]
    assert len(forks) == 1
    assert inside(v1.v1.path, []) == []
    assert len(forks) == 1


def test_it_enters_as_one_thread(tmp_path):
    """Lost: 10 ms of an idle machine for each question: a whole process is let in only when none of the system is being
    forked or is ending, a thread at once.
    """
    (tmp_path / "tasks").write_text("")
    assert process_inside._answers(str(tmp_path), []) == ""
    assert (tmp_path / "tasks").read_text() == "0"


def test_a_question_that_could_not_be_put_is_no_answer(v1, monkeypatch):
    """Lost: why; a GPU is called closed in a container that has just ended."""
    with pytest.raises(HeteroError, match=r"cannot be entered \(.*No such file"):
        inside(f"{v1.v1.path}/gone", [parse("c 195:0 rw")])
    monkeypatch.setattr(process_inside, "_answers", lambda path, nodes: os._exit(3))
    with pytest.raises(HeteroError, match=r"cannot be entered \(work inside it ended without an answer"):
        inside(v1.v1.path, [parse("c 195:0 rw")])


def test_who_is_kept_waiting_inside_is_not_waited_for(tmp_path, monkeypatch):
    """Lost: a verb and its lock, to a cgroup with a freezer in its hierarchy: who enters waits for the thaw."""
    os.mkfifo(tmp_path / "tasks")  # which nobody reads: who opens it to write waits
    monkeypatch.setattr(process_inside, "PATIENCE", 0.3)
    with pytest.raises(HeteroError, match=r"cannot be entered \(work inside it took longer than 0\.3 s\): .*frozen"):
        inside(str(tmp_path), [parse("c 195:0 rw")])


def test_where_no_process_can_be_made_it_is_told(tmp_path, monkeypatch):
    """Lost: what could not be asked, and two descriptors each time, where a host has as many processes as it may."""

    def full():
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(HeteroError, match=r"cannot be entered \(.*Resource temporarily unavailable"):
        inside(str(tmp_path), [parse("c 195:0 rw")])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(("kind", "form"), [("b", stat.S_IFBLK), ("c", stat.S_IFCHR)])
def test_the_node_that_is_asked_about_is_ours_alone_and_goes(tmp_path, monkeypatch, kind, form):
    """Lost: a device of the host to each of its users, by a node that was left; or its memory, to ended processes."""
    made, children = [], []
    mknod, fork = os.mknod, os.fork

    def making(path, mode, device):
        made.append((stat.S_IFMT(mode), stat.S_IMODE(mode), os.major(device), os.minor(device)))
        mknod(path, mode, device)

    def forking():
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(process_inside.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "mknod", making)
    monkeypatch.setattr(os, "fork", forking)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(HeteroError, match=r"cannot be entered \(.*No such file"):
        inside(str(tmp_path / "gone"), [(kind, 195, 7, "rw")])
    assert made == [(form, 0o600, 195, 7)]
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert not os.path.exists(f"/proc/{children[0]}")
