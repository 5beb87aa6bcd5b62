# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cgroups of cgroup v1 and v2 for a test, with a process inside."""

from __future__ import annotations

import fcntl
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_path
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import Inside, new_cgroup


@pytest.fixture
def stack():
    """Things to be undone, the last first."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def inside(tmp_path):
    """A process in our own cgroups, to be put elsewhere; it has ended before its cgroups go."""
    process = Inside(tmp_path)
    yield process
    if process.process.poll() is None:
        process.end()


@pytest.fixture
def v2(stack, inside):
    """A cgroup of cgroup v2 with the process inside."""
    path = stack.enter_context(new_cgroup("v2"))
    stack.callback(inside.end)
    inside.enter(path)
    return of_path(path)


@pytest.fixture
def v1(stack, inside):
    """A device cgroup of cgroup v1 with the process inside."""
    path = stack.enter_context(new_cgroup("v1"))
    stack.callback(inside.end)
    inside.enter(path)
    return of_path(path)


#: The kernel's, and so every test's: by one test at a time, for each puts back what it found.
HARDEN = Path("/proc/sys/net/core/bpf_jit_harden")


@pytest.fixture
def unhardened():
    """Programs have their constants as they were loaded, whatever other tests do."""
    with HARDEN.open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield


@pytest.fixture
def hardened():
    """Programs loaded within have their constants blinded."""

    @contextmanager
    def within():
        with HARDEN.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            before = held.read()
            HARDEN.write_text("2")
            try:
                yield
            finally:
                HARDEN.write_text(before)

    return within
