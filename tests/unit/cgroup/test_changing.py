# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One change of a cgroup at a time. Changes of real cgroups are in test_module.py."""

from __future__ import annotations

import fcntl
import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.cgroup.changing import Changing
from ansible_collections.hetero.compute.plugins.module_utils.errors import TimedOut


def test_a_cgroup_that_somebody_else_changes_is_waited_for_no_longer_than_asked(tmp_path):
    """Lost: the end of a play beside one that hangs, and where to look for it."""
    cgroup = SimpleNamespace(name="jackie", v1=None, v2=SimpleNamespace(path=str(tmp_path)))
    passed = SimpleNamespace(passed=True, seconds=0.5, nap=lambda _seconds: pytest.fail("it waits on"))
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        why = r"jackie: is being changed by another process for 0\.5 s: see which holds a flock on it \(lslocks\)"
        with pytest.raises(TimedOut, match=why), Changing(cgroup).alone(passed):
            pytest.fail("two change it at once")
    finally:
        os.close(held)
    with Changing(cgroup).alone(passed):
        pass  # it is free again
