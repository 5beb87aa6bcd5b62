# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that cost whoever gives them nothing, and whoever reads them hours: holes, zeros, one layer listed many times.
If these fail, an import goes on for hours after its timeout, and no other image is imported meanwhile.

Tests files/walk.py.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import os
import subprocess
import tarfile
import time
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.walk import CHUNK
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import archive, container_images, store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.tests.unit.images import container_files
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar, member, tar

#: Seconds of an import's timeout, and after which it surely is over on a busy machine.
TIMEOUT, OVER = 0.3, 60.0
#: GiB of zeros that are read in several times OVER.
GIBIBYTES = 16


@contextmanager
def over_time(words):
    """The block ends soon after its timeout, and says so."""
    begun = time.monotonic()
    with pytest.raises(TimedOut) as caught:
        yield
    assert time.monotonic() - begun < OVER
    assert words in str(caught.value)
    assert str(caught.value).endswith(f"within {TIMEOUT:g} s: raise timeout")


@pytest.fixture
def images(tmp_path):
    return store.ImageStore(str(tmp_path / "images"))


def holes(path, size):
    with open(path, "ab") as file:
        os.truncate(file.fileno(), size)
    return str(path)


def many_layers(tmp_path, monkeypatch, mebibytes, count):
    """The image of a container that lists one packed layer, of a file that nobody writes, many times."""
    monkeypatch.setattr(container_files, "packed", functools.lru_cache(container_files.packed))
    bomb = container_files.layer(member("etc/.wh.x", "\0" * (mebibytes << 20)))
    layers = [container_files.layer(*container_files.BASE), *[bomb] * count]
    return container_files.oci(tmp_path / "box.tar", (layers, {}), how="gzip")


@pytest.mark.parametrize("check", [True, False])
def test_a_file_of_holes(images, tmp_path, check):
    source = holes(tmp_path / "disk.raw", GIBIBYTES << 30)
    with over_time(f"{source}: not read"):
        images.import_image(source, "box", change=Change(check), deadline=Deadline(TIMEOUT))


def test_a_folder_with_a_file_of_holes(images, tmp_path):
    (tmp_path / "box").mkdir()
    holes(tmp_path / "box" / "disk", GIBIBYTES << 30)
    with over_time(f"{tmp_path}/box: not read"):
        images.import_image(str(tmp_path / "box"), "box", deadline=Deadline(TIMEOUT))


def test_a_file_of_more_holes_than_any_disk_has_is_not_read(images, tmp_path):
    source = holes(tmp_path / "disk.raw", 1 << 40)
    begun = time.monotonic()
    with pytest.raises(BadInput, match="has 1024 GiB with its holes; 256 GiB is the most: give its root"):
        images.import_image(source, "box")
    assert time.monotonic() - begun < OVER


def test_a_layer_that_is_listed_many_times(images, tmp_path, monkeypatch):
    images.import_image(image_tar(tmp_path / "x86.tar", **{"image.json": '{"arch": "x86_64"}'}), "x86")
    source = many_layers(tmp_path, monkeypatch, 16, 40)
    with over_time(f"{source}: layer "):
        images.import_image(source, "box", machine=Machine(kernel_of="x86"), deadline=Deadline(TIMEOUT))
    assert not [name for name in os.listdir(images.folder) if ".tmp." in name]


def test_the_layers_have_one_room_together(images, tmp_path, monkeypatch):
    monkeypatch.setattr(container_images, "HEADERS", 1 << 20)
    monkeypatch.setattr(store.ImageStore, "_room", lambda _self: 4 << 20)
    images.import_image(image_tar(tmp_path / "x86.tar", **{"image.json": '{"arch": "x86_64"}'}), "x86")
    assert images.import_image(many_layers(tmp_path, monkeypatch, 1, 3), "box", machine=Machine(kernel_of="x86"))
    with pytest.raises(BadInput, match=r"layer 10 of 41: is larger than there is room for in .*: make") as caught:
        images.import_image(many_layers(tmp_path, monkeypatch, 1, 40), "large", machine=Machine(kernel_of="x86"))
    assert caught.value.thing == str(tmp_path / "box.tar")


def test_zeros_that_are_packed_well(images, tmp_path):
    """Lost: what is wrong; it was said that something is not removed, and that the next run goes on with that."""
    source = image_tar(tmp_path / "plain.tar", kernel="\0" * (128 << 20))
    packed, compress = tmp_path / "box.tar.bz2", functools.lru_cache(bz2.compress)
    with open(source, "rb") as file:
        packed.write_bytes(b"".join(map(compress, iter(lambda: file.read(CHUNK), b""))))
    with over_time(f"{packed}: not read"):
        images.import_image(str(packed), "box", deadline=Deadline(TIMEOUT))


def test_an_import_that_is_over_time_after_it_was_read(images, tmp_path, monkeypatch):
    """Lost: the same, where the timeout passes while the image is made."""
    source = image_tar(tmp_path / "box.tar")
    monkeypatch.setattr(store, "pack", lambda _folder, _path, seconds: time.sleep(TIMEOUT))
    with over_time(f"{source}: not imported"):
        images.import_image(source, "box", deadline=Deadline(TIMEOUT))


def test_zeros_after_what_gzip_packed(tmp_path):
    """gzip of Python looks through them byte by byte."""
    with gzip.open(tmp_path / "box.tar.gz", "wb") as file:
        file.write(container_files.layer(member("root")))
    source = holes(tmp_path / "box.tar.gz", 1 << 30)
    (tmp_path / "image").mkdir()
    with over_time("not read"):
        archive.unpack(source, str(tmp_path / "image"), 4 << 30, Deadline(TIMEOUT))


def sparse_member(size, packed):
    """A file of so many bytes, of which all but the first one are holes, and which has so many in the archive."""
    fields = {"major": "1", "minor": "0", "name": "root/a", "realsize": str(size)}
    headers = {f"GNU.sparse.{name}": value for name, value in fields.items()}
    info, _data = member("root/a", kind=tarfile.REGTYPE, pax_headers=headers)
    info.size = packed
    return info.tobuf(tarfile.PAX_FORMAT) + b"1\n0\n1\n".ljust(1024, b"\0")


def test_a_file_of_holes_in_an_archive(tmp_path):
    (tmp_path / "box.tar").write_bytes(sparse_member(GIBIBYTES << 30, 1024) + bytes(1024))
    (tmp_path / "image").mkdir()
    with over_time("not read"):
        archive.unpack(str(tmp_path / "box.tar"), str(tmp_path / "image"), 1 << 40, Deadline(TIMEOUT))


def test_zeros_that_no_file_has(tmp_path):
    """tarfile goes to the next member in one step, and gzip unpacks all that lies between."""
    source, gibibytes = str(tmp_path / "box.tar.gz"), 7  # the most without a header of their own
    with open(source, "wb") as file:
        file.write(gzip.compress(sparse_member(1, gibibytes << 30)) + gzip.compress(bytes(CHUNK)) * (gibibytes << 10))
    (tmp_path / "image").mkdir()
    with over_time("not read"):
        archive.unpack(source, str(tmp_path / "image"), 1 << 40, Deadline(TIMEOUT))
    with pytest.raises(BadInput, match="is larger than there is room for"):
        archive.unpack(source, str(tmp_path / "image"), 1 << 20, Deadline(60))


def test_zstd_that_prints_nothing(tmp_path, monkeypatch):
    plain = tar(tmp_path / "box.tar", [member("root")])
    subprocess.run(["zstd", "--quiet", plain], check=True)
    program = tmp_path / "bin" / "zstd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "image").mkdir()
    with over_time("not read"):
        archive.unpack(f"{plain}.zst", str(tmp_path / "image"), 1 << 20, Deadline(TIMEOUT))
