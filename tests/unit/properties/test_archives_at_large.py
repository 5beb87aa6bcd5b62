# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives that nobody vouches for, more of them than test_archive.py tries. If these failed, an image from the web
would end an import in a traceback, or leave something outside its folder.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import tarfile
import tempfile

from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.archive import unpack
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import member
from ansible_collections.hetero.compute.tests.unit.properties.conftest import said

ROOM = 8 << 20
PARTS = ["..", ".", "", "root", "etc", "a", "b", "kernel", "a" * 260, "x\n", "\u202e", "\udc80", "\ud800"]
NAMES = st.lists(st.sampled_from(PARTS), max_size=5).map("/".join)
KINDS = [tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]
KINDS += [tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, b"Z"]
TIMES = st.sampled_from([0, 1, -1, 1.5, 2**31, 2**40, 2**63, 2**64, 1e300, 10**30])
OWNERS = st.sampled_from([0, 1, -1, -2, 2**31, 2**32 - 1, 2**32, 2**64])
#: Extended headers (pax) may say anything of the next member.
PAX = st.dictionaries(
    st.sampled_from(["path", "linkpath", "size", "uid", "gid", "mtime", "GNU.sparse.map", "GNU.sparse.size"])
    | st.sampled_from(["GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.realsize", "hdrcharset"]),
    st.sampled_from(["", "0", "1", "-1", "1e300", "inf", "nan", "9" * 30, "a", "../a", "0,1,2,3", "1,0", "BINARY"]),
    max_size=3,
)


@st.composite
def archives(draw):
    """A tar of odd members, perhaps compressed, perhaps damaged."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
        for _member in range(draw(st.integers(0, 5))):
            kind = draw(st.sampled_from(KINDS))
            content = draw(st.sampled_from(["", "x", "y" * 600])) if kind == tarfile.REGTYPE else None
            owner = dict(uid=draw(OWNERS), gid=draw(OWNERS), mtime=draw(TIMES), mode=draw(st.integers(0, 0o7777)))
            info, data = member(draw(NAMES), content, kind, linkname=draw(NAMES), **owner)
            info.pax_headers = draw(PAX)
            try:
                tar.addfile(info, io.BytesIO(data))
            except (UnicodeError, ValueError, OverflowError):
                continue  # what tarfile itself cannot write
    data = packed.getvalue()
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=30)) + data[at + draw(st.integers(0, 600)) :]
    pack = draw(st.sampled_from([None, None, None, gzip.compress, lzma.compress]))
    if pack:
        data = pack(data)
        data = data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data
    return data


def test_archives(try_all, tmp_path):
    """Unpacked below the folder or refused in words; nothing beside it is touched."""
    (tmp_path / "outside").write_text("the proxy's own")

    def taken_or_refused(data):
        above = tempfile.mkdtemp(dir=tmp_path)
        archive, folder = os.path.join(above, "odd.tar"), os.path.join(above, "image")
        os.mkdir(folder)
        with open(archive, "wb") as file:
            file.write(data)
        _nothing, error = said(unpack, archive, folder, ROOM, Deadline(120))
        if error:
            assert str(error).encode()
            assert archive in str(error)
        assert sorted(os.listdir(above)) == ["image", "odd.tar"]
        assert (tmp_path / "outside").read_text() == "the proxy's own"
        shutil.rmtree(above)

    try_all(700, archives(), taken_or_refused)


def test_images(try_all, tmp_path):
    """What is in an image is looked at before the store has it."""
    store = ImageStore(str(tmp_path / "images"))
    text = st.sampled_from(['{"arch": "a"}', '{"arch": 3}', "[]", "null", "{", "", "[" * 5000, '{"arch": "a", "x": 1}'])
    kinds = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
    about = text.map(str.encode) | st.binary(max_size=20)
    strategy = st.tuples(about, kinds, kinds, st.none() | st.sampled_from(["a", "", "\n", "é"]), NAMES)

    def imported_or_refused(given):
        content, kind, other, arch, name = given
        path = tmp_path / "image.tar"
        with tarfile.open(path, "w") as tar:
            for part, data, its in (("image.json", content, None), ("kernel", b"k", kind), ("root", b"", other)):
                info, _empty = member(part, None if its == tarfile.DIRTYPE else "", its, linkname="image.json")
                info.size = len(data) if info.type == tarfile.REGTYPE else 0
                tar.addfile(info, io.BytesIO(data))
        image, error = said(store.import_image, str(path), name or "n", None, Machine(arch))
        assert str(error) if error else not store.damage(image.hash)
        assert not list((tmp_path / "images").glob("*.tmp.*"))

    try_all(100, strategy, imported_or_refused)
