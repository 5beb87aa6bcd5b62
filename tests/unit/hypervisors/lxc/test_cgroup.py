# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroup that a module's arguments name. If these fail, rules are written into another container's cgroup."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import cgroup


@pytest.fixture
def played(monkeypatch):
    """Containers c1, which runs as process 77, and c2, which does not run."""
    monkeypatch.setattr(cgroup, "of_path", lambda path: ("path", path))
    monkeypatch.setattr(cgroup, "of_container", lambda pid, name: ("container", pid, name))
    monkeypatch.setattr(cgroup, "Changing", lambda found, container=None: (found, container))
    pids = dict(c1=77, c2=None)
    monkeypatch.setattr(
        cgroup, "Container", lambda name, path: SimpleNamespace(name=name, path=path, init_pid=pids[name])
    )


def test_a_path_or_a_container_that_runs(played):
    """Lost: which of the two a user named."""
    assert cgroup.named(dict(cgroup="/sys/fs/cgroup/a", container=None, lxcpath="/x")) == (
        ("path", "/sys/fs/cgroup/a"),
        None,
    )
    one = SimpleNamespace(name="c1", path="/x", init_pid=77)
    assert cgroup.named(dict(cgroup=None, container="c1", lxcpath="/x")) == (("container", 77, "c1"), one)


def test_what_does_not_run_has_none(played):
    """Lost: what to do, instead of rules that nobody keeps."""
    with pytest.raises(BadInput, match="container c2: does not run, so it has no cgroup: start it, or write the rules"):
        cgroup.named(dict(cgroup=None, container="c2", lxcpath="/x"))
