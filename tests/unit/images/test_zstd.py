# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zstd by its own program. If these fail, an image is cut short without a word, or fills the disk."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.zstd import MAGIC, decompressed

DATA = bytes(range(256)) * 4096


@pytest.fixture
def packed(tmp_path):
    try:
        data = subprocess.run(["zstd", "-1", "--stdout"], input=DATA, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("program zstd is not installed")
    assert data.startswith(MAGIC)
    (tmp_path / "a.zst").write_bytes(data)
    return tmp_path / "a.zst"


def plain(path, limit=1 << 20, seconds=30.0):
    with path.open("rb") as file:
        file.read(9)  # a reader that looked at its beginning
        return decompressed(file, str(path.parent), limit, Deadline(seconds))


def test_all_of_it_in_a_file_without_a_name(packed):
    """Lost: the image; or its bytes, left on the disk by who was killed."""
    with plain(packed) as file:
        assert file.read() == DATA
        assert [path.name for path in packed.parent.iterdir()] == ["a.zst"]


def test_a_larger_one_ends_where_the_room_does(packed):
    """Lost: the disk's last bytes."""
    with pytest.raises(BadInput, match="is larger than the 0 MiB there is room for"):
        plain(packed, limit=(1 << 20) - 1)


def test_one_that_is_cut_short_is_refused(packed):
    """Lost: an image without its end, taken for good."""
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(BadInput, match="is cut short or damaged"):
        plain(packed)


def test_the_users_time_is_over(packed):
    """Lost: the timeout."""
    with pytest.raises(TimedOut):
        plain(packed, seconds=0.0)


def test_without_the_program_its_package_is_named(packed, monkeypatch):
    """Lost: what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HeteroError, match=r"program zstd is not installed .*: install package zstd"):
        plain(packed)
