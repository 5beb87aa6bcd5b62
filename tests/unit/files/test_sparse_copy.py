# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots that are copied to another host in pieces. If these fail, a tenant's root is another one after its move."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import zlib

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import sparse_copy

#: Small pieces, so that the files are small: the product's are of 16 MiB.
PIECE = 64 << 10


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sparse_copy, "PIECE", PIECE)


@pytest.fixture
def source(tmp_path):
    """A file of an odd size with data at its begin, across two pieces, in its last bytes, and holes between."""
    path = tmp_path / "root.ext4"
    size = 20 * PIECE + 12345
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, data in (
            (0, b"begin"),
            (4 * PIECE - 5000, b"x" * 10000),
            (9 * PIECE + 8192, os.urandom(4096)),
            (size - 7, b"the end"),
        ):
            file.seek(offset)
            file.write(data)
    return str(path)


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    return str(folder / "root.ext4")


def send(source, copy, numbers=None):
    has = sparse_copy.begin(copy, sparse_copy.size_of(source))
    sent = sparse_copy.wanted(source, has) if numbers is None else numbers
    for number in sent:
        sparse_copy.write(copy, sparse_copy.read(source, number))
    return sent


def same(source, copy):
    with open(source, "rb") as one, open(copy, "rb") as other:
        return one.read() == other.read()


def test_a_copy_has_all_data_and_all_holes(source, copy):
    """Lost: data of a tenant, or a disk of 160 GB that fills the new host although 2 GB of it are used."""
    assert send(source, copy) == [0, 3, 4, 9, 20]
    assert same(source, copy)
    assert os.stat(copy).st_blocks * 512 < sparse_copy.size_of(source) // 4
    sparse_copy.must_be(copy, sparse_copy.digest(source))
    assert send(source, copy) == [], "a whole copy was sent once more"


def test_only_root_reads_a_copy_from_its_first_byte(source, copy):
    """Lost: what is in a tenant's root, to every user of the new host."""
    before = os.umask(0)
    try:
        sparse_copy.begin(copy, 5 * PIECE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600


def test_an_empty_file_and_one_of_holes_alone(tmp_path, copy):
    """Lost: a move of an instance one of whose files is empty."""
    for size in (0, 3 * PIECE + 1):
        (tmp_path / "holes").write_bytes(b"")
        os.truncate(tmp_path / "holes", size)
        assert send(str(tmp_path / "holes"), copy) == []
        assert (os.stat(copy).st_size, os.stat(copy).st_blocks) == (size, 0)
        sparse_copy.must_be(copy, sparse_copy.digest(str(tmp_path / "holes")))


def test_a_copy_that_was_cut_off_goes_on(source, copy):
    """Lost: hours of copying for a play that was killed, or half a piece that counts as whole."""
    send(source, copy, [0, 3, 9])
    with open(copy, "r+b") as file:  # killed while it wrote
        file.seek(4 * PIECE)
        file.write(b"x" * 100)
        file.seek(3 * PIECE + 100)
        file.write(b"?")
    assert send(source, copy) == [3, 4, 20]
    assert same(source, copy)


def test_data_that_went_from_the_source_since_goes_from_the_copy(source, copy):
    """Lost: what a tenant had removed before the second try comes back, in the middle of other files."""
    send(source, copy, [0, 3, 9])
    with open(copy, "r+b") as file:
        file.seek(12 * PIECE)
        file.write(b"left by a process that was killed")
    with open(source, "r+b") as file:
        file.seek(9 * PIECE)
        file.write(bytes(PIECE))
    assert send(source, copy) == [4, 9, 12, 20]
    assert same(source, copy)


def test_a_source_of_another_size_is_copied_anew(source, copy):
    """Lost: a root that was made larger between two tries."""
    send(source, copy)
    os.truncate(source, 2 * PIECE + 1)
    assert send(source, copy) == [0]
    assert same(source, copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda piece: dict(piece, data=piece["data"][: len(piece["data"]) // 8 * 4]),
        lambda piece: dict(piece, data="no base64!"),
        lambda piece: dict(piece, data=base64.b64encode(b"no zlib").decode()),
        lambda piece: dict(piece, data=base64.b64encode(zlib.compress(bytes(PIECE))).decode()),
        lambda piece: dict(piece, data=base64.b64encode(zlib.compress(bytes(100 * PIECE))).decode()),
        lambda piece: dict(piece, sha256="0" * 64),
        lambda piece: dict(piece, length=5),
        lambda piece: dict(piece, number=4),
    ],
)
def test_a_piece_that_was_changed_on_its_way_is_not_written(source, copy, change):
    """Lost: a tenant's data, where something between the hosts breaks them."""
    sparse_copy.begin(copy, sparse_copy.size_of(source))
    with pytest.raises(HeteroError, match="arrived with other data than were sent"):
        sparse_copy.write(copy, change(sparse_copy.read(source, 9)))
    assert os.stat(copy).st_blocks == 0


@pytest.mark.parametrize("number", [-1, 21, 10**9])
def test_a_piece_that_no_file_has_is_refused(source, copy, number):
    """Lost: the rest of the disk, to a file that grows with a number."""
    sparse_copy.begin(copy, sparse_copy.size_of(source))
    with pytest.raises(BadInput, match="the file has 21 pieces"):
        sparse_copy.read(source, number)
    with pytest.raises(BadInput, match="the file has 21 pieces"):
        sparse_copy.write(copy, dict(sparse_copy.read(source, 9), number=number))


def test_a_byte_that_changed_on_the_disk_is_seen_at_the_end(source, copy):
    """Lost: a root with a wrong byte starts, and the right one is removed."""
    send(source, copy)
    with open(copy, "r+b") as file:
        file.seek(9 * PIECE + 8200)
        byte = file.read(1)
        file.seek(9 * PIECE + 8200)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(HeteroError, match="is not the same as its source"):
        sparse_copy.must_be(copy, sparse_copy.digest(source))
    assert send(source, copy) == [9]
    sparse_copy.must_be(copy, sparse_copy.digest(source))


def test_a_disk_without_room_is_told_before_anything_is_written(source, copy, monkeypatch):
    """Lost: the other instances of the new host, whose disk is full."""
    sparse_copy.begin(copy, sparse_copy.size_of(source))
    piece = sparse_copy.read(source, 9)
    monkeypatch.setattr(sparse_copy, "spare", lambda folder: PIECE - 1)
    with pytest.raises(HeteroError, match="has room for 0 MiB of the copy, and 1 are needed"):
        sparse_copy.write(copy, piece)
    with pytest.raises(HeteroError, match="needed"):
        sparse_copy.must_have_room(os.path.dirname(copy), PIECE)
    assert os.stat(copy).st_blocks == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system needs root: run as root")
def test_a_disk_that_others_fill_meanwhile_is_named(source, tmp_path, monkeypatch):
    """Lost: which disk of which host is full."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(small)], check=True)
    try:
        copy = str(small / "root.ext4")
        sparse_copy.begin(copy, sparse_copy.size_of(source))
        monkeypatch.setattr(sparse_copy, "spare", lambda folder: PIECE)
        with open(source, "r+b") as file:
            file.seek(4 * PIECE)
            file.write(os.urandom(2 * PIECE))
        sparse_copy.write(copy, sparse_copy.read(source, 0))
        with pytest.raises(HeteroError, match=f"{copy}: cannot be written"):
            sparse_copy.write(copy, sparse_copy.read(source, 5))
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_link_in_the_place_of_a_copy_is_not_followed(tmp_path, copy):
    """Lost: a file of the new host's, to which somebody laid a link."""
    (tmp_path / "other").write_bytes(b"another's")
    os.symlink(tmp_path / "other", copy)
    with pytest.raises(HeteroError):
        sparse_copy.begin(copy, PIECE)
    assert (tmp_path / "other").read_bytes() == b"another's"


def test_what_is_only_kept_on_the_disk_is_not_counted_as_copied(source, copy):
    """Lost: a host that has room for the copy; or an evening, to gigabytes that a dry run says are copied, of a disk
    whose blocks were kept for it at once (fallocate), as by a tool of virtual machines.
    """
    before = sparse_copy.bytes_of(source)
    assert 0 < before <= os.stat(source).st_blocks * 512
    with open(source, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        os.posix_fallocate(file.fileno(), end, 64 << 20)
    assert os.stat(source).st_blocks * 512 >= 64 << 20
    assert sparse_copy.bytes_of(source) <= before + sparse_copy.BLOCK
    send(source, copy)
    # A file system also counts the blocks of its own that say where a file's data lie (ext4: from the fifth piece on).
    assert os.stat(copy).st_blocks * 512 < 1 << 20
