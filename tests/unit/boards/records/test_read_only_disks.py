# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A database on a file system that is read-only, as the kernel makes one in which it finds errors. If this fails, an
operator is told to make a file writable for root, and does not hear that the disk is failing.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


@pytest.fixture
def disk(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("create", [True, False])
def test_a_read_only_file_system_is_named_with_the_way_to_its_reason(disk, create):
    path = str(disk / "state.db")
    Store(path).close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(HeteroError, match=r"state.db: is on a file system that is read-only .*dmesg") as raised:
        Store(path, create=create)
    assert "user id" not in str(raised.value)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    Store(path, create=create).close()
