# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A database on a file system that is read-only, as the kernel makes one in which it finds errors. If this fails, an
operator is told to make a file writable for root, and does not hear that the disk is failing.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


@pytest.fixture
def disk(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def read_only(disk, way="ro"):
    subprocess.run(["mount", "-o", f"remount,{way}", disk], check=True)


def test_a_read_only_file_system_is_named_with_the_way_to_its_reason(disk):
    path = str(disk / "state.db")
    Store(path).close()
    read_only(disk)
    with pytest.raises(HeteroError, match=r"state.db: is on a file system that is read-only .*dmesg") as raised:
        Store(path)
    assert "user id" not in str(raised.value)
    read_only(disk, "rw")
    Store(path).close()


@pytest.mark.parametrize("left", [(), ("-wal",), ("-wal", "-shm")], ids=str)
def test_it_is_read_there_with_all_that_was_written(disk, left):
    """Lost: status of the whole node, as its disk fails; or the newest claims, which are in the log only."""
    path = str(disk / "state.db")
    with Store(path) as store:
        store.event(None, "test", "first")
        for end in ("", *left):  # as a process that is killed leaves them
            shutil.copy(f"{path}{end}", f"{disk}/killed{end}")
    for end in left and ("", *left):
        shutil.move(f"{disk}/killed{end}", f"{path}{end}")
    read_only(disk)
    with Store(path, create=False) as store:
        assert [event.text for event in store.events()] == ["first"]
        with pytest.raises(HeteroError, match=r"is on a file system that is read-only"):
            store.event(None, "test", "second")


def test_what_is_written_since_it_was_mended_is_read(disk):
    """Lost: a claim, to a look that began before."""
    path = str(disk / "state.db")
    Store(path).close()
    read_only(disk)
    with Store(path, create=False) as store:
        assert store.events() == []
        read_only(disk, "rw")
        with Store(path) as other:
            other.event(None, "test", "first")
        assert [event.text for event in store.events()] == ["first"]
