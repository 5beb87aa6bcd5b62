# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The printed ways of a folder that is a mount point, and of a link to another file system, cut off (kill, power) at
any point and typed again, also with what an earlier release's line left: mv, which had copied all, was removing what
it had copied, and asked for the removal of its target, the only whole copy. Lost: what an instance has.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.links import must_be_no_link
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import must_hold_no_mount

NAMES = [f"file{number}" for number in range(10)]
KINDS = pytest.mark.parametrize("kind", ["mount", "link", "link to a mount", "link to a file"])
#: Ends the shell before the command of this number, or while that one is at work: half of what it is to copy or remove
#: is.
CUT_OFF = """
at() { [ $((number += 1)) = $CUT ] || return 0; [ -z "$HALF" ] || half "$@"; exit 9; }
half() {
  case "$*" in
    cp*) [ ! -f $DATA ] || { echo the > $NEW; exit 9; };&
    *"-exec cp"*)
      command mkdir -p -m 711 $NEW/rootfs
      echo the > $NEW/rootfs/file3
      command cp $DATA/rootfs/file2 $NEW/rootfs;;
    rm*-rf*|*-delete) command rm -f $DATA{,.moved}/rootfs/file{0,1,2,3,4};;
  esac
}
for name in cp sync mv rm find umount mkdir chown chmod; do
  eval "$name() { at $name \\"\\$@\\"; command $name \\"\\$@\\"; }"
done
"""


def typed(line, **how):
    before = "".join(f"{name}={value}\n" for name, value in how.items()) + (CUT_OFF if how else "")
    done = subprocess.run(["bash", "-c", before + line], check=False, capture_output=True, text=True)
    print("rc", done.returncode, done.stdout.strip(), done.stderr.strip())
    return done


class Place:
    """An instance's folder whose data are on another file system."""

    def __init__(self, top, kind):
        self.top, self.kind = top, kind
        self.folder, self.new, big = top / "lxc/a", top / "lxc/a.new", top / "big"
        self.file = self.folder / "root.ext4"
        self.folder.parent.mkdir()
        big.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", big], check=True)
        self.data = big if kind == "link to a mount" else big / "a"
        if kind == "mount":
            self.folder.mkdir()
            subprocess.run(["mount", "--move", big, self.folder], check=True)
            self.data = self.folder
        elif kind == "link to a file":
            self.folder.mkdir()
            self.file.symlink_to(big / "a")
            self.new = self.folder / "root.ext4.new"
        else:
            self.folder.symlink_to(self.data)
        if kind == "link to a file":
            self.data.write_text("the tenant's")
            return
        (self.data / "rootfs").mkdir(parents=True)
        for name in NAMES:
            (self.data / "rootfs" / name).write_text("the tenant's")
        (self.data / "config").write_text("config")
        self.data.chmod(0o711)

    @property
    def said(self):
        asked = (must_hold_no_mount, "container a") if self.kind == "mount" else (must_be_no_link, self.file)
        with pytest.raises(Refused) as refused:
            asked[0](str(self.folder), str(asked[1]))
        return str(refused.value)

    @property
    def line(self):
        return re.search(r" \((?=[{!])(.*)\); where that was cut off, type it again", self.said)[1]

    def is_whole(self):
        """Whether all is in its place, and nothing elsewhere."""
        assert not self.folder.is_symlink()
        assert not self.folder.is_mount()
        must_be_no_link(str(self.folder), str(self.file))
        if self.kind == "link to a file":
            assert self.file.read_text() == "the tenant's"
        else:
            assert sorted(path.name for path in (self.folder / "rootfs").iterdir()) == NAMES
            assert {(self.folder / "rootfs" / name).read_text() for name in NAMES} == {"the tenant's"}
            assert (self.folder / "config").read_text() == "config"
            assert self.folder.stat().st_mode & 0o777 == 0o711
        assert list((self.top / "big").iterdir()) == []
        assert [path.name for path in self.folder.parent.iterdir()] == ["a"]
        return not self.new.exists()


@pytest.fixture
def place(tmp_path, kind):
    return Place(tmp_path, kind)


@KINDS
@pytest.mark.parametrize("half", ["", 1])
@pytest.mark.parametrize("cut", range(1, 12))
def test_cut_off_and_typed_again(place, cut, half):
    line, new = place.line, place.new
    if typed(line, CUT=cut, HALF=half, NEW=new, DATA=place.data).returncode == 9:
        assert typed(line).returncode == 0
    assert place.is_whole()


@KINDS
def test_typed_once_more_when_all_is_done(place):
    line = place.line
    assert typed(line).returncode == 0
    typed(line)
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["mount", "link", "link to a mount"])
def test_cut_off_by_an_earlier_releases_line(place):
    shutil.copytree(place.data, place.new)
    (place.new / "config").unlink()
    for name in NAMES[:5]:
        (place.data / "rootfs" / name).unlink()
    assert typed(place.line).returncode == 0
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["link", "link to a file"])
def test_not_there_after_a_restart_it_is_no_whole_copy(place):
    """The other file system is not mounted by itself: what was copied until the power went is not all."""
    line = place.line
    typed(line, CUT=1, HALF=1, NEW=place.new, DATA=place.data)
    subprocess.run(["umount", place.top / "big"], check=True)
    assert typed(line).returncode != 0
    assert "type the line again that was cut off" in place.said


@pytest.mark.parametrize("kind", ["link", "link to a mount"])
def test_typed_while_its_root_is_mounted_it_takes_nothing_out_of_that(place):
    """A container's root is mounted as long as its host is up, also while it is stopped."""
    data = place.data
    shutil.rmtree(data / "rootfs")
    (data / "rootfs").mkdir()
    subprocess.run(["mke2fs", "-q", "-t", "ext4", data / "root.ext4", "8M"], check=True)
    subprocess.run(["mount", "-o", "loop", data / "root.ext4", data / "rootfs"], check=True)
    (data / "rootfs/tenant").write_text("the tenant's")
    line = place.line
    assert f"{data}/rootfs ext4" in typed(line).stdout
    assert (data / "rootfs/tenant").exists()
    subprocess.run(["umount", data / "rootfs"], check=True)
    assert typed(line).returncode == 0
    subprocess.run(["mount", "-o", "loop", place.file, place.folder / "rootfs"], check=True)
    assert (place.folder / "rootfs/tenant").read_text() == "the tenant's"
    subprocess.run(["umount", place.folder / "rootfs"], check=True)


@pytest.mark.parametrize("kind", ["link to a file"])
def test_a_file_that_is_mounted_as_a_root_is_not_copied(place):
    """What its root writes until it is unmounted would be in the file that is removed."""
    subprocess.run(["mke2fs", "-q", "-t", "ext4", place.data, "8M"], check=True)
    root = place.folder / "rootfs"
    root.mkdir()
    subprocess.run(["mount", "-o", "loop", place.data, root], check=True)
    line = place.line
    assert str(place.data) in typed(line).stdout
    assert place.file.is_symlink()
    subprocess.run(["umount", root], check=True)
    assert typed(line).returncode == 0
    assert not place.file.is_symlink()
