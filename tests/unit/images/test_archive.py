# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives nobody vouches for. If these failed, an image from the web could overwrite the proxy's own files, or fill
its disk, or be taken in half and boot a broken board.

Tests files/tree.py.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import stat
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import archive as archive_file
from ansible_collections.hetero.compute.tests.unit.images.packing import member, tar

ROOM = 64 << 20
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


def unpack(path, folder, limit):
    archive_file.unpack(path, folder, limit, Deadline(120))


@pytest.fixture
def target(tmp_path):
    """An empty folder to unpack into, beside a file that must stay as it is."""
    (tmp_path / "outside").write_text("the proxy's own\n")
    folder = tmp_path / "image"
    folder.mkdir()
    return folder


def refused(tmp_path, target, *members, limit=ROOM):
    """Unpack; the BadInput's text. Nothing outside the folder may have been touched."""
    archive = tar(tmp_path / "hostile.tar", members)
    with pytest.raises(BadInput) as caught:
        unpack(archive, str(target), limit)
    assert (tmp_path / "outside").read_text() == "the proxy's own\n"
    assert sorted(os.listdir(tmp_path)) == ["hostile.tar", "image", "outside"]
    assert archive in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["../outside", "root/../../outside", "/etc/hetero-escaped", "..", "root/..", "./../outside", "a/../../outside"],
)
def test_names_that_lead_out_are_refused(tmp_path, target, name):
    assert name in refused(tmp_path, target, member("root"), member(name, "gotcha"))
    assert not os.path.exists("/etc/hetero-escaped")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("root/up", kind=LINK, linkname="../../outside")], "leads out of root/"),
        ([member("root/a/up", kind=LINK, linkname="b/../../../outside")], "leads out of root/"),
        ([member("root", kind=LINK, linkname="..")], "symbolic link outside root/"),
        ([member("kernel", kind=LINK, linkname="/etc/shadow")], "symbolic link outside root/"),
        ([member("root/shadow", kind=HARD, linkname="/etc/shadow")], "hard link out of the archive"),
        ([member("root/shadow", kind=HARD, linkname="../outside")], "hard link out of the archive"),
        ([member("root/shadow", kind=HARD, linkname="root/nowhere")], "does not come before it"),
        ([member("root/folder", kind=HARD, linkname="root")], "hard link to a folder"),
        ([member("root/sda", kind=tarfile.BLKTYPE, devmajor=8)], "device node"),
        ([member("root/mem", kind=tarfile.CHRTYPE, devmajor=1, devminor=1)], "device node"),
        ([member("root/pipe", kind=tarfile.FIFOTYPE)], "named pipe"),
        ([member("root/odd", kind=b"Z")], "of a kind that no file is"),
    ],
)
def test_links_out_and_special_files_are_refused(tmp_path, target, members, reason):
    text = refused(tmp_path, target, member("root"), *members)
    assert reason in text
    assert f"member {members[-1][0].name}" in text


@pytest.mark.parametrize("via", ["/", "..", "/etc", "sub"])
def test_a_member_below_a_linked_folder_is_refused(tmp_path, target, via):
    """The classic: a link first, then a file "below" it. Also by way of a link that stays inside."""
    link = member("root/x/door", kind=LINK, linkname=via)
    text = refused(tmp_path, target, member("root/x/sub"), link, member("root/x/door/outside", "gotcha"))
    assert "lies below 'door', which is a link or a file" in text


def test_a_hard_link_never_leads_through_a_symbolic_one(tmp_path, target):
    """A hard link to a link to /etc/shadow links the link itself; one below a linked folder is refused."""
    door = member("root/door", kind=LINK, linkname="/etc")
    text = refused(tmp_path, target, door, member("root/shadow", kind=HARD, linkname="root/door/shadow"))
    assert "is a link or a file" in text
    link = member("root/to", kind=LINK, linkname="/etc/shadow")
    folder = tmp_path / "second"
    folder.mkdir()
    unpack(tar(tmp_path / "ok.tar", [link, member("root/same", kind=HARD, linkname="root/to")]), str(folder), ROOM)
    assert os.readlink(folder / "root" / "same") == "/etc/shadow"


def test_a_later_member_replaces_a_link_and_does_not_write_through_it(tmp_path, target):
    link = member("root/motd", kind=LINK, linkname="/../outside")
    unpack(tar(tmp_path / "twice.tar", [link, member("root/motd", "later")]), str(target), ROOM)
    assert (target / "root" / "motd").read_text() == "later"
    assert not (target / "root" / "motd").is_symlink()
    assert (tmp_path / "outside").read_text() == "the proxy's own\n"


@pytest.mark.parametrize("second", [member("root/x", "file"), member("root/x", kind=LINK, linkname="y")])
def test_a_folder_and_a_file_of_one_name_are_refused(tmp_path, target, second):
    assert "at once" in refused(tmp_path, target, member("root/x"), second)


def test_too_big_is_refused_before_it_is_written(tmp_path, target):
    text = refused(tmp_path, target, member("root/huge", "x" * (3 << 20)), limit=2 << 20)
    assert "member root/huge makes the image larger than the 2 MiB there is room for" in text
    assert not (target / "root" / "huge").exists()


def test_many_empty_files_are_too_big_as_well(tmp_path, target):
    assert "larger than" in refused(tmp_path, target, *[member(f"root/{n}", "") for n in range(600)], limit=2 << 20)


def test_a_bomb_is_stopped(tmp_path, target):
    """256 MiB of zeros after the end mark, 260 kB packed."""
    path = tmp_path / "bomb.tar.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(bytes(1 << 20) * 256)
    with pytest.raises(BadInput, match="larger than there is room for"):
        unpack(str(path), str(target), 1 << 20)


def test_a_header_that_claims_gigabytes_is_not_read_into_memory(tmp_path, target):
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 8 << 30
    (tmp_path / "big.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(BadInput, match=r"a header of \d+ bytes"):
        unpack(str(tmp_path / "big.tar"), str(target), ROOM)


def test_what_a_root_needs_is_kept(tmp_path, target):
    """Set-uid, owners, times, absolute links, hard links, holes: without them the board's system is broken."""
    names = ["root/bin/su", "root/home/a", "root/etc/alternatives/vi", "root/bin/su2", "root/hole", "root/up"]
    members = [
        member("./", mode=0o700),
        member("./root", mode=0o755, mtime=1000),
        member(names[0], "su", mode=0o4755, mtime=1234567890),
        member(names[1], mode=0o2750, uid=1000, gid=100, mtime=1234),
        member(names[2], kind=LINK, linkname="/usr/bin/vim", uid=5),
        member(names[3], kind=HARD, linkname="./root/bin/su"),
        member(names[4], "\0" * (4 << 20) + "end"),
        member(names[5], kind=LINK, linkname="bin/../home"),
    ]
    unpack(tar(tmp_path / "good.tar", members), str(target), ROOM)
    su, home, link, su2, hole, up = (os.lstat(target / name) for name in names)
    assert stat.S_IMODE(su.st_mode) == 0o4755
    assert su.st_mtime == 1234567890
    assert (stat.S_IMODE(home.st_mode), home.st_uid, home.st_gid, home.st_mtime) == (0o2750, 1000, 100, 1234)
    assert link.st_uid == 5
    assert os.readlink(target / names[2]) == "/usr/bin/vim"
    assert su2.st_ino == su.st_ino
    assert hole.st_size == (4 << 20) + 3
    assert hole.st_blocks * 512 < 1 << 20
    assert (target / names[4]).read_bytes() == bytes(4 << 20) + b"end"
    assert stat.S_ISLNK(up.st_mode)
    assert os.stat(target / "root").st_mtime == 1000


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_an_archive_cut_short_anywhere_is_refused(tmp_path, target, mode):
    """tarfile alone takes many of these for a whole archive, and the board would lack files."""
    content = random.Random(7).randbytes(30000).hex()
    whole = tmp_path / "whole.tar"
    tar(whole, [member("root"), *[member(f"root/{n}", content[n : n + 9000]) for n in range(5)]], mode)
    unpack(str(whole), str(target), ROOM)
    data = whole.read_bytes()
    used = len(data) if mode != "w" else 512 + 5 * (512 + 9216)
    for at in sorted({0, 1, 5, 511, 512, 513, 1024, used // 3, used // 2, used - 9216, used - 1}):
        cut = tmp_path / "cut.tar"
        cut.write_bytes(data[:at])
        folder = tmp_path / f"cut{at}"
        folder.mkdir()
        with pytest.raises(BadInput, match=r"cut\.tar: is cut short, damaged or no tar"):
            unpack(str(cut), str(folder), ROOM)


@pytest.mark.parametrize("at", [0, 100, 148, 156, 512 + 257, 1024 + 148, 1024 + 100])
def test_a_damaged_header_is_refused(tmp_path, target, at):
    """In the middle, tarfile takes one for the end of the archive."""
    archive = tmp_path / "damaged.tar"
    tar(archive, [member("root"), member("root/a", ""), member("root/b", ""), member("root/c", "")])
    data = bytearray(archive.read_bytes())
    data[at] ^= 0x55
    archive.write_bytes(bytes(data))
    with pytest.raises(BadInput, match="is cut short, damaged or no tar"):
        unpack(str(archive), str(target), ROOM)


def test_no_tar_and_no_file_are_said(tmp_path, target):
    (tmp_path / "text").write_text("hello\n" * 1000)
    with pytest.raises(BadInput, match="no tar"):
        unpack(str(tmp_path / "text"), str(target), ROOM)
    with pytest.raises(BadInput, match="cannot be read"):
        unpack(str(tmp_path / "missing.tar"), str(target), ROOM)


def test_an_xz_that_asks_for_more_memory_than_any_that_is_packed_so(tmp_path, target):
    """Lost: all that runs on a proxy node, whose memory 100 KB would fill: its header names a dictionary of 1.5 GiB."""
    content = Path(tar(tmp_path / "plain.tar", [member("root/a", "a" * 9000)])).read_bytes()
    packed = bytearray(lzma.compress(content, check=lzma.CHECK_NONE))
    size = (packed[12] + 1) * 4
    header = packed[12 : 12 + size]
    header[header.index(0x21) + 2] = 37
    header[-4:] = zlib.crc32(bytes(header[:-4])).to_bytes(4, "little")
    packed[12 : 12 + size] = header
    (tmp_path / "bomb.tar.xz").write_bytes(packed)
    with pytest.raises(BadInput, match="Memory usage limit exceeded"):
        unpack(str(tmp_path / "bomb.tar.xz"), str(target), ROOM)


def test_an_xz_of_several_streams(tmp_path, target):
    """As pixz, and `cat` of two files, write them, with padding between."""
    content = Path(tar(tmp_path / "plain.tar", [member("root/a", "a" * 9000)])).read_bytes()
    half = lzma.compress(content[:5000]) + b"\0" * 8
    (tmp_path / "two.tar.xz").write_bytes(half + lzma.compress(content[5000:]))
    unpack(str(tmp_path / "two.tar.xz"), str(target), ROOM)
    assert (target / "root" / "a").read_text() == "a" * 9000
    (tmp_path / "cut.tar.xz").write_bytes(half[:-60])
    with pytest.raises(BadInput, match="damaged"):
        unpack(str(tmp_path / "cut.tar.xz"), str(target), ROOM)


def test_a_full_disk_is_not_the_archives_fault(tmp_path, target):
    """The room is looked at first, but another may fill the disk meanwhile."""
    archive = tar(tmp_path / "good.tar", [member("root/a", "a" * (2 << 20))])
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", str(target)], check=False)
    if mount.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        with pytest.raises(HeteroError, match=r"cannot be unpacked to .*No space left") as caught:
            unpack(archive, str(target), ROOM)
        assert not isinstance(caught.value, BadInput)
    finally:
        subprocess.run(["umount", str(target)], check=True)


PARTS = st.sampled_from(["..", ".", "", "root", "etc", "link", "a" * 300, "x\n", "\u202e", "é", "~", "*"])
NAMES = st.lists(PARTS, max_size=6).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, LINK, HARD, tarfile.FIFOTYPE, tarfile.CHRTYPE])


def taken_or_refused(path, folder):
    """Unpack; what is said of it, in one line."""
    try:
        unpack(str(path), str(folder), ROOM)
    except BadInput as error:
        return str(error)
    return f"{path} is taken"


def all_below(folder):
    """Paths; a link may name what nothing can be called, so none is followed."""
    found = ((parent, name) for parent, folders, files in os.walk(folder) for name in folders + files)
    return sorted(Path(parent, name) for parent, name in found)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=8))
@example([("root/root", tarfile.SYMTYPE, "a" * 256)])
def test_no_names_and_links_at_all_lead_out(tmp_path_factory, entries):
    """Whatever the members, either they are unpacked below the folder or refused; what is outside stays as it is."""
    above = tmp_path_factory.mktemp("above")
    (above / "etc").mkdir()
    (above / "etc" / "link").write_text("outside")
    folder = above / "one" / "image"
    folder.mkdir(parents=True)
    content = {tarfile.REGTYPE: "x"}
    members = [member(name, content.get(kind), kind, linkname=target) for name, kind, target in entries]
    before = [(str(path), path.lstat().st_mtime_ns) for path in all_below(above) if path != folder]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as made:
        for info, data in members:
            made.addfile(info, io.BytesIO(data))
    path = above.with_suffix(".tar")
    path.write_bytes(archive.getvalue())
    assert taken_or_refused(path, folder).isprintable()
    below = [path for path in all_below(above) if folder in path.parents or path == folder]
    assert before == [(str(p), p.lstat().st_mtime_ns) for p in all_below(above) if p not in below]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2048), st.integers(0, 4000), st.booleans())
def test_no_bytes_at_all_end_in_a_traceback(tmp_path_factory, noise, at, replace):
    """A whole archive with any damage: taken, or refused in words."""
    above = tmp_path_factory.mktemp("noise")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as made:
        link = member("root/l", kind=LINK, linkname="x")
        for info, data in [member("root"), member("root/" + "n" * 120, "data"), link]:
            made.addfile(info, io.BytesIO(data))
    data = archive.getvalue()
    path = above / "noise.tar"
    path.write_bytes(data[:at] + noise + data[at + (len(noise) if replace else 0) :])
    (above / "image").mkdir()
    assert taken_or_refused(path, above / "image").startswith(str(path))
    assert sorted(os.listdir(above)) == ["image", "noise.tar"]
