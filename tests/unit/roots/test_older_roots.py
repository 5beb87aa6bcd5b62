# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots that an older release made: their uppers in folders of one file system, the image's files in a folder. If these
failed, an upgrade of the proxy would cost what is on the boards that run.

Tests roots/ownership.py.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ownership import token_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import (
    Place,
    leftovers,
    prepare,
    put_back,
    remove,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root


@pytest.fixture
def older_image(site, image):
    """The image as older releases kept it: its files in a folder, mounted nowhere."""
    os.makedirs(image.folder, exist_ok=True)
    shutil.copytree(root_of(image), os.path.join(image.folder, "root"), symlinks=True)
    unmount(image.root)
    os.unlink(os.path.join(image.folder, "root.ext4"))
    os.rmdir(os.path.join(image.folder, "mounted"))
    return image


def lay(site, image, number, claim):
    """A root as older releases made it, mounted."""
    folder = site.state / "roots" / f"fs_{number}"
    for name in ("upper", "work", "root"):
        (folder / name).mkdir(parents=True)
    made = dict(claim=claim, image=image.hash, kind="overlay", whole=True)
    (folder / "made.json").write_text(json.dumps(made))
    root = Root(str(site.state), number)
    assert root.older
    root.mount(image)
    return root


@pytest.fixture
def jackie(site, older_image, report):
    """(proxy, claim): a board that runs on an older root, a file of its tenant's in it."""
    with site.proxy() as proxy:
        claim = site.claim(proxy)
        root = lay(site, older_image, 0, token_of(claim))
        root.settle("jackie")
        root.put_key(claim.ssh_public_key)
        root.put_host_key("jackie")
        proxy.store.put("jackie", image_hash=older_image.hash)
        prepare(proxy, proxy.board(0), proxy.store.record(0).claim, older_image, Change(), report.call)
        (older(site) / "data").write_text("the tenant's\n")
        yield proxy, proxy.store.record(0).claim


def older(site):
    return site.state / "roots" / "fs_0" / "root"


def test_it_runs_on_as_it_is(site, jackie, report):
    """Lost: an instance, to an upgrade."""
    proxy, claim = jackie
    change = Change()
    again = prepare(proxy, proxy.board(0), claim, image_of(proxy, claim), change, report.call)
    assert (again["restored"], change.changed) == ([], False)
    assert again["root"] == site.exports()[1]["path"] == str(older(site))
    assert (older(site) / "data").read_text() == "the tenant's\n"
    assert not (site.state / "board-roots" / "fs_0").exists()


def test_after_a_restart_it_has_the_files_that_it_was_made_over(site, jackie):
    """Lost: all that an instance read from its image: an overlay's files are stale over any other lower layer."""
    proxy, claim = jackie
    root_of(image_of(proxy, claim))
    site.set_exports({})
    site.clean()
    assert [export.path for export in restore(proxy, print)] == [str(older(site))]
    mount = mounts_below(str(site.state / "roots"))[str(older(site))]
    assert mount.lower.endswith("/root")
    assert (older(site) / "data").read_text() == "the tenant's\n"
    assert (older(site) / "etc" / "hostname").read_text() == "jackie\n"


def test_a_missing_mount_is_put_back(site, jackie):
    proxy, claim = jackie
    site.set_exports({})
    site.clean()
    assert set(put_back(proxy, proxy.board(0), claim, Change())) == {"mount"}
    assert (older(site) / "data").exists()


def test_rebuilt_it_is_a_file_system_of_its_own_and_the_other_runs_on(site, jackie, report):
    """Lost: the way out of a shared file system, or the one who still is on it."""
    proxy, claim = jackie
    image = image_of(proxy, claim)
    other = lay(site, image, 1, "bob 1.5")
    other.settle("bob")
    proxy.store.put("jackie", image_hash=None, host_key=None)
    claim = replace(claim, image_hash=None, host_key=None)
    done = prepare(proxy, proxy.board(0), claim, image, Change(), report.call)
    assert "root" in done["restored"]
    assert not (site.state / "roots" / "fs_0").exists()
    assert done["root"] == site.exports()[1]["path"] == str(site.state / "board-roots" / "fs_0" / "root")
    assert mounts_below(str(site.state / "board-roots"))[done["root"]].lower == image.root
    assert other.ready(image)
    assert other.older
    assert other.inspect(claim.ssh_public_key)["hostname"] == "bob"


def test_terminated_nothing_of_it_is_left(site, jackie, report):
    """Lost: the next tenant's privacy; a tenant's deep folders stop nothing."""
    proxy, _claim = jackie
    here = os.open(older(site), os.O_RDONLY)
    for _level in range(1600):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    assert remove(proxy, proxy.board(0), Change(), report.call)
    assert leftovers(proxy, proxy.board(0)) == []
    assert not (site.state / "roots" / "fs_0").exists()
    assert not Place(proxy, proxy.board(0)).root.older


def test_a_copy_of_an_older_release_runs_on(site, older_image, report):
    """Older releases copied the image where nfs-ganesha could not tell a kernel's overlays apart."""
    with site.proxy():
        pass  # its database is as old as its root
    folder = site.state / "roots" / "fs_0"
    folder.mkdir(parents=True)
    shutil.copytree(os.path.join(older_image.folder, "root"), folder / "root", symlinks=True)
    with site.proxy() as proxy:
        claim = site.claim(proxy)
        made = dict(claim=token_of(claim), image=older_image.hash, kind="copy", whole=True)
        (folder / "made.json").write_text(json.dumps(made))
        proxy.store.put("jackie", image_hash=older_image.hash)
        claim = proxy.store.record(0).claim
        prepare(proxy, proxy.board(0), claim, older_image, Change(), report.call)
        assert site.exports()[1]["path"] == str(folder / "root")
        assert mounts_below(str(site.state)) == {}
        assert [export.path for export in restore(proxy, print)] == [str(folder / "root")]


def test_no_second_root_beside_one_that_is_not_mounted(site, jackie, report):
    """Lost: what a tenant wrote to a root of an older release, behind an empty one that was made in its place."""
    proxy, claim = jackie
    Root(str(site.state), 0).unmount(Deadline(60))
    os.rename(site.state / "roots", site.state / "elsewhere")
    (site.state / "roots").mkdir()
    (site.state / "roots.ext4").touch()
    with pytest.raises(HeteroError, match="is not mounted, and may hold this board's root"):
        prepare(proxy, proxy.board(0), claim, image_of(proxy, claim), Change(), report.call)
    assert not (site.state / "board-roots").exists() or os.listdir(site.state / "board-roots") == []
