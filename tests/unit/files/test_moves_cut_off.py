# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The printed ways of a folder that is a mount point, and of a link, cut off (kill, power) anywhere and typed again,
also with what an earlier release's lines left, which moved what they had copied. Lost: what an instance has.

Tests files/mounts.py.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.links import must_be_no_link
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import must_hold_no_mount
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed, steps, typed

NAMES = [f"file{number}" for number in range(10)]
KINDS = pytest.mark.parametrize("kind", ["mount", "link", "link to a mount", "link to a file"])
#: Ends the shell before the command of this number, or while the copy is at work: half of it is there.
CUT_OFF = """
at() { [ $((number += 1)) = $CUT ] || return 0; [ -z "$HALF" ] || half "$@"; exit 9; }
half() {
  if [ -f $DATA ]; then echo the > $NEW; else
    command mkdir -p $NEW/rootfs
    command cp $DATA/rootfs/file2 $NEW/rootfs
    echo the > $NEW/rootfs/file3
  fi
}
for name in cp sync mv rm umount; do
  eval "$name() { at $name \\"\\$@\\"; command $name \\"\\$@\\"; }"
done
"""


class Place:
    """An instance's folder whose data are on another file system."""

    def __init__(self, top, kind):
        self.top, self.kind = top, kind
        self.folder, self.new, self.big = top / "lxc/a", top / "lxc/a.new", top / "big"
        self.file = self.folder / "root.ext4"
        self.folder.parent.mkdir()
        self.big.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", self.big], check=True)
        self.data = self.big if kind == "link to a mount" else self.big / "a"
        if kind == "link to a file":
            self.folder.mkdir()
            self.file.symlink_to(self.data)
            self.new = self.folder / "root.ext4.new"
            self.data.write_text("the tenant's")
            return
        (self.data / "rootfs").mkdir(parents=True)
        for name in NAMES:
            (self.data / "rootfs" / name).write_text("the tenant's")
        (self.data / "config").write_text("config")
        self.data.chmod(0o711)
        if kind == "mount":
            self.folder.mkdir()
            subprocess.run(["mount", "--bind", self.data, self.folder], check=True)
        else:
            self.folder.symlink_to(self.data)

    @property
    def said(self):
        asked = (must_hold_no_mount, "container a") if self.kind == "mount" else (must_be_no_link, self.file)
        with pytest.raises(Refused) as refused:
            asked[0](str(self.folder), str(asked[1]))
        return str(refused.value)

    def typed(self, line, cut, half=""):
        return typed(line, f"CUT={cut} HALF={half} NEW={self.new} DATA={self.data}\n{CUT_OFF}")

    def is_whole(self):
        """Whether all is in its place, and nothing beside it; what was copied is as it was."""
        assert not self.folder.is_symlink()
        assert not self.folder.is_mount()
        must_be_no_link(str(self.folder), str(self.file))
        assert [path.name for path in self.folder.parent.iterdir()] == ["a"]
        return self.has_all(self.file if self.kind == "link to a file" else self.folder) and self.has_all(self.data)

    def has_all(self, place):
        if self.kind == "link to a file":
            return place.read_text() == "the tenant's" and not self.new.exists()
        assert sorted(path.name for path in (place / "rootfs").iterdir()) == NAMES
        assert {(place / "rootfs" / name).read_text() for name in NAMES} == {"the tenant's"}
        assert (place / "config").read_text() == "config"
        return place.stat().st_mode & 0o777 == 0o711


@pytest.fixture
def place(tmp_path, kind):
    return Place(tmp_path, kind)


@KINDS
@pytest.mark.parametrize("half", ["", 1])
@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_cut_off_and_typed_again(place, step, cut, half):
    for number, line in enumerate(steps(place.said)):
        if number != step or place.typed(line, cut, half if step == 0 else "").returncode == 9:
            assert typed(line).returncode == 0
    assert place.is_whole()


@KINDS
def test_typed_once_more_when_all_is_done(place):
    said = place.said
    assert followed(said)
    followed(said)
    if place.new.exists():  # what is copied once more replaces nothing
        shutil.rmtree(place.new)
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["mount", "link", "link to a mount"])
def test_cut_off_by_an_earlier_releases_line(place):
    """Whose mv had copied all, and was removing what it had copied."""
    shutil.copytree(place.data, place.new)
    (place.new / "config").unlink()
    shutil.move(place.data / "rootfs/file3", place.top)
    assert followed(place.said)
    shutil.move(place.top / "file3", place.data / "rootfs")
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["link", "link to a file"])
def test_not_there_after_a_restart_it_is_no_whole_copy(place):
    """The other file system is not mounted by itself: what was copied until the power went is not all."""
    copy, put = steps(place.said)
    place.typed(copy, cut=1, half=1)
    subprocess.run(["umount", place.big], check=True)
    assert typed(copy).returncode != 0
    assert "only the link says where the data are: mount what holds it" in place.said


@pytest.mark.parametrize("kind", ["mount"])
def test_what_the_mount_hid_comes_not_over_the_copy(place):
    """Lost: what was written since, to who types the line again, after it is unmounted."""
    copy, unmount, put = steps(place.said)
    assert typed(copy).returncode == 0
    assert typed(unmount).returncode == 0
    (place.folder / "config").write_text("older")
    assert typed(copy).returncode != 0
    assert typed(put).returncode != 0
    assert (place.new / "config").read_text() == "config"
    (place.folder / "config").unlink()
    assert typed(put).returncode == 0
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["link", "link to a file"])
def test_what_is_left_of_the_first_time_is_not_the_second_ones(place):
    """An earlier release's line had put it back, but for its last `rm -rf`; later it was moved there again. Lost:
    the link, which alone says where the data are, to a line that ended with an error each time.
    """
    subprocess.run(["cp", "-a", place.data, place.big / "a.moved"], check=True)
    assert followed(place.said)
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["link", "link to a file"])
def test_the_link_goes_for_a_copy_alone(place):
    """Typed before the first line, or where that has failed."""
    own = place.file if place.kind == "link to a file" else place.folder
    assert typed(steps(place.said)[1]).returncode != 0
    assert own.is_symlink()


@pytest.mark.parametrize("kind", ["mount", "link", "link to a mount"])
def test_typed_while_its_root_is_mounted_it_copies_nothing(place):
    """A container's root is mounted as long as its host is up, also while it is stopped: what it writes until then
    would not be in the copy.
    """
    folder = place.folder if place.kind == "mount" else place.data
    shutil.rmtree(place.data / "rootfs")
    (place.data / "rootfs").mkdir()
    subprocess.run(["mke2fs", "-q", "-t", "ext4", place.data / "root.ext4", "8M"], check=True)
    subprocess.run(["mount", "-o", "loop", folder / "root.ext4", folder / "rootfs"], check=True)
    (folder / "rootfs/tenant").write_text("the tenant's")
    if place.kind == "mount":
        with pytest.raises(Refused) as refused:
            must_hold_no_mount(str(folder), "container a", str(folder / "rootfs"))
        said = str(refused.value)
    else:
        said = place.said
    assert f"{folder}/rootfs ext4" in typed(steps(said)[0]).stdout
    assert not place.new.exists()
    subprocess.run(["umount", folder / "rootfs"], check=True)
    assert followed(said)
    subprocess.run(["mount", "-o", "loop", place.file, place.folder / "rootfs"], check=True)
    assert (place.folder / "rootfs/tenant").read_text() == "the tenant's"
    subprocess.run(["umount", place.folder / "rootfs"], check=True)


@pytest.mark.parametrize("kind", ["link to a file"])
def test_a_file_that_is_mounted_as_a_root_is_not_copied(place):
    subprocess.run(["mke2fs", "-q", "-t", "ext4", place.data, "8M"], check=True)
    root = place.folder / "rootfs"
    root.mkdir()
    subprocess.run(["mount", "-o", "loop", place.data, root], check=True)
    assert str(place.data) in typed(steps(place.said)[0]).stdout
    assert not place.new.exists()
    subprocess.run(["umount", root], check=True)
    assert followed(place.said)
    assert not place.file.is_symlink()
