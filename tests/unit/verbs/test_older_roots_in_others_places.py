# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root of an earlier release and one of this one, in each other's places.

If these fail, a tenant's root is booted by another, or goes with that one's end.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import make_empty
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import roots
from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import (
    folder,
    is_refused,
    numbers,
    swap,
)


@pytest.fixture
def mixed(site, monkeypatch):
    """jackie's root is of an earlier release, bob's of this one."""
    with monkeypatch.context() as patch:
        patch.setattr(roots, "make_empty", lambda path, _uuid: make_empty(path))
        assert not is_refused(site.provision("jackie"))
    assert not is_refused(site.provision("bob"))
    for board, name in enumerate(("jackie", "bob")):
        (folder(site, board) / "root" / "data").write_text(f"{name}'s")
        site.module("tilera_boot", boards=[board], state="stopped", timeout=10, instance=name)
    for board in (0, 1):
        for point in reversed(mounts_below(str(folder(site, board)))):
            unmount(point)
    return site


def test_an_older_root_does_not_go_with_one_whose_own_file_has_a_uuid(mixed):
    """Lost: jackie's only root, of an earlier release, by the end of bob's, whose own lies (by its UUID) in fs_0."""
    swap(mixed)
    jackies = (folder(mixed, 1) / "root.ext4").stat().st_ino
    results = mixed.terminate("bob")
    assert jackies in numbers(mixed), results


def test_an_older_root_is_not_booted_by_another(mixed):
    """Lost: jackie's data, to bob."""
    swap(mixed)
    results = mixed.provision("bob")
    data = folder(mixed, 1) / "root" / "data"
    assert not (data.exists() and data.read_text() == "jackie's"), [result.get("msg") for result in results]
