# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a child that works in a tenant's root is bounded: what it tells of may be the tenant's.

Tests core/deadline.py.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import is_taken


def test_an_answer_without_measure_is_an_error(monkeypatch):
    """Lost: the node's memory, to a tenant who has a hundred million names in a folder that we list."""
    monkeypatch.setattr(child, "MOST", 1 << 20)
    assert len(child.in_child(lambda: "x" * (1 << 19), Deadline(60), "jackie", "see it")) == 1 << 19
    with pytest.raises(HeteroError, match="jackie: work inside it answered more than 1 MiB: see what is in it"):
        child.in_child(lambda: "x" * (1 << 21), Deadline(60), "jackie", "see it")


def test_an_answer_waits_for_no_other_threads_child(monkeypatch):
    """Lost: the time of all well PDUs of a site, and their answers, to one that is dead."""
    has_pipe, forked, took = threading.Event(), threading.Event(), {}
    pipe, fork = os.pipe, os.fork

    def well_waits():
        ends = pipe()
        if threading.current_thread() is threads[0]:
            has_pipe.set()
            forked.wait(1)  # until the other one forks, where that can be
        return ends

    def forks():
        number = fork()
        if number and threading.current_thread() is threads[1]:
            forked.set()
        return number

    def ask(name, seconds):
        began = time.monotonic()
        assert child.in_child(lambda: time.sleep(seconds) or name, Deadline(60), name, "see it") == name
        took[name] = time.monotonic() - began

    monkeypatch.setattr(child.os, "pipe", well_waits)
    monkeypatch.setattr(child.os, "fork", forks)
    threads = [threading.Thread(target=ask, args=words) for words in (("well", 0), ("dead", 20))]
    threads[0].start()
    assert has_pipe.wait(300)
    threads[1].start()
    threads[0].join(15)
    assert "well" in took
    threads[1].join()
    assert took.keys() == {"well", "dead"}


def test_a_child_that_cannot_be_forked_leaves_no_descriptor(monkeypatch):
    """Lost: the node's descriptors, two a try, to a limit of processes that lasts."""

    def full():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(child.os, "fork", full)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError):
        child.in_child(lambda: None, Deadline(60), "jackie", "see it")
    assert os.listdir("/proc/self/fd") == before


def test_a_child_that_is_never_answered_has_none_of_our_locks(tmp_path):
    """Lost: each further verb on a container whose file system keeps such a child for ever."""
    path = tmp_path / "lock"
    with open(path, "w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        sleeping = child.Child(lambda: time.sleep(60), closes=True)
    try:
        with open(path) as second:
            deadline = Deadline(20)
            while not is_taken(second):
                assert not deadline.passed
                deadline.nap()
    finally:
        with pytest.raises(TimedOut):
            sleeping.answer(Deadline(0), "child", "")


def test_an_error_names_its_thing_once():
    """A person reads it once, whether the child named it or its parent."""

    def fail():
        raise HeteroError("does not run", "container a", "start it")

    with pytest.raises(HeteroError, match=r"^container a: does not run: start it$"):
        child.in_child(fail, Deadline(20), "container a", "see it")
