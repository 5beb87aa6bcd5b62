# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cgroups of cgroup v1 and v2 for a test, with a process inside."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from real_cgroups import Inside, new_cgroup

from ansible_collections.hetero.compute.plugins.module_utils.cgroup.devices import of_path


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
