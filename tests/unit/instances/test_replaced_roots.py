# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's root that was replaced while the former one is mounted; another's root, or a link, in its place. If
these fail, a tenant works in a file that nobody names any more, works in a neighbour's root, or leaves its data behind.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import top

OTHER = "a/rootfs: what is mounted here is not the file root.ext4 beside it, and a runs: nothing of it is changed or"


def add(site, name, owner, key):
    """A container that is stopped, whose root is mounted still, as a stop leaves it."""
    site.claim(name, flavor=SMALL, owner=owner, key=key)
    site.up(name)
    top(site, name).joinpath("own").write_text(f"{name}'s")
    site.do(lifecycle.stopped, name)


@pytest.fixture
def one(site):
    add(site, "a", "jo", KEY)
    return site


@pytest.fixture
def pair(one):
    add(one, "b", "bo", OTHER_KEY)
    return one


def file(site, name="a"):
    return Path(disks.file_of(site.container(name)))


def unmounted(site, *names):
    for name in names:
        disks.unmount(site.container(name), site.here.disks)


def run(*argv):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True).stdout


def copied(site, path):
    """A copy of a's root as it is now."""
    run("sync", "-f", top(site, "a"))
    run("cp", "-a", "--sparse=always", file(site), path)
    return path


def test_a_backup_that_is_put_back_is_what_it_runs_with(one):
    """Lost: all that a tenant writes since its backup was put back, for it ran with the file that was removed then."""
    os.replace(copied(one, one.folder / "backup"), file(one))
    assert one.up("a")["instances"][0]["state"] == "running"
    top(one, "a").joinpath("since").write_text("written since")
    one.do(lifecycle.stopped, "a")
    unmounted(one, "a")  # as a restart of the host
    assert one.up("a")["instances"][0]["state"] == "running"
    assert top(one, "a").joinpath("since").read_text() == "written since"


def test_the_printed_way_counts_while_the_former_root_is_mounted(one):
    """Lost: the root that an operator put there on purpose, as printed: it ran with the one that was taken away."""
    new = copied(one, one.folder / "new")
    file(one).rename(one.folder / "kept")
    new.rename(file(one))
    subprocess.run(["e2fsck", "-fp", file(one)], check=False)  # 1: corrected
    run("tune2fs", "-U", "random", file(one))
    (one.folder / "word").write_text("the new one")
    run("debugfs", "-w", "-R", f"write {one.folder}/word /root/which", file(one))
    said = one.up("a")["msg"]
    subprocess.run(re.search(r"e2fsck -fp \S+; tune2fs -U \S+ [^\s;]+", said)[0], shell=True, check=False)
    assert one.up("a")["instances"][0]["state"] == "running"
    assert top(one, "a").joinpath("which").read_text() == "the new one"


def test_what_runs_from_a_replaced_file_is_not_ended_before_somebody_says_so(one):
    """Lost: what a tenant has by now, which is in the removed file only, to a reboot; its end is its tenant's word."""
    one.up("a")
    os.replace(copied(one, one.folder / "backup"), file(one))
    top(one, "a").joinpath("now").write_text("newer than the backup")
    for verb in (lifecycle.running, lifecycle.rebooted, lifecycle.stopped):
        said = one.do(verb, "a")["msg"]
        assert OTHER in said
        assert top(one, "a").joinpath("now").exists()
        assert one.container("a").running
    run(*re.search(r"lxc-stop -P \S+ -n \w+", said)[0].split())  # as printed
    assert one.up("a")["instances"][0]["state"] == "running"
    assert not top(one, "a").joinpath("now").exists()
    assert top(one, "a").joinpath("own").read_text() == "a's"
    os.replace(copied(one, one.folder / "backup"), file(one))
    assert not one.do(lifecycle.absent, "a").get("failed")


def test_anothers_root_that_is_mounted_in_its_place_is_neither_written_nor_run(pair):
    """Lost: bo's root, with jo's key in it, to who runs a: an operator had mounted it there to look into it."""
    unmounted(pair, "a", "b")
    run("mount", "-o", "loop", file(pair, "b"), disks.root_of(pair.container("a")))
    assert pair.up("a")["instances"][0]["state"] == "running"
    assert top(pair, "a").joinpath("own").read_text() == "a's"
    assert pair.up("b")["instances"][0]["state"] == "running"
    keys = top(pair, "b").joinpath(".ssh/authorized_keys").read_text()
    assert (KEY in keys, OTHER_KEY in keys) == (False, True)


def test_a_root_that_cannot_be_read_is_not_removed_while_a_neighbours_is_away(pair):
    """Lost: bo's only root, with a damaged first superblock, of which a copy is left, to the end of jo's container."""
    unmounted(pair, "a", "b")
    with open(file(pair, "b"), "r+b") as raw:
        raw.seek(1024)
        raw.write(bytes(1024))
    number = file(pair, "b").stat().st_ino
    own = file(pair).rename(pair.folder / "own")
    file(pair, "b").rename(file(pair))
    for verb in (lifecycle.absent, lifecycle.running):
        said = pair.do(verb, "a")["msg"]
        assert "a/root.ext4: this cannot be read, and may be the root of container b, whose own is not in its" in said
        assert file(pair).stat().st_ino == number
    file(pair).rename(file(pair, "b"))  # as printed
    own.rename(file(pair))
    assert pair.up("a")["instances"][0]["state"] == "running"


def test_a_root_that_cannot_be_read_is_in_no_ends_way_where_all_others_are_in_their_places(pair):
    """Lost: a name and an address for good, to a container's own damaged root."""
    unmounted(pair, "a")
    with open(file(pair), "r+b") as raw:
        raw.write(bytes(1 << 20))
    assert not pair.do(lifecycle.absent, "a").get("failed")
    assert not file(pair).exists()


def as_folders(site, *names):
    """Their roots are folders, as an earlier release made them."""
    for name in names:
        container = site.container(name)
        root, plain = Path(disks.root_of(container)), Path(container.folder, "plain")
        run("cp", "-a", root, plain)
        unmounted(site, name)
        file(site, name).unlink()
        root.rmdir()
        plain.rename(root)
        config = Path(container.config_file)
        text = re.sub(r"(?m)^lxc\.rootfs\.path = .*$", f"lxc.rootfs.path = dir:{root}", config.read_text())
        config.write_text(re.sub(r"(?m)^# hetero\.compute: root .*\n", "", text))


def swap_folders(site):
    a, b = (Path(disks.root_of(site.container(name))) for name in "ab")
    a.rename(site.folder / "x")
    b.rename(a)
    (site.folder / "x").rename(b)


def test_roots_of_an_earlier_release_in_each_others_places_are_told_apart(pair):
    """Lost: bo's root, a folder, to the end of jo's container; or to jo, who ran it with the own key in it."""
    as_folders(pair, "a", "b")
    swap_folders(pair)
    for verb in (lifecycle.running, lifecycle.rebooted, lifecycle.absent):
        assert "a/rootfs: this has the ssh host key of b: it is that one's root, or a copy" in pair.do(verb, "a")["msg"]
        assert not pair.container("a").running
    assert top(pair, "a").joinpath("own").read_text() == "b's"
    assert KEY not in top(pair, "a").joinpath(".ssh/authorized_keys").read_text()
    swap_folders(pair)  # as printed
    for name in "ab":
        assert pair.up(name)["instances"][0]["state"] == "running"
    assert not pair.do(lifecycle.absent, "a").get("failed")


def moved_away(site):
    """a's folder on a bigger disk, a link in its place, and the line of its configuration that says so."""
    unmounted(site, "a")
    folder, big = Path(site.container("a").folder), site.folder / "big"
    run("cp", "-a", "--sparse=always", folder, big)
    run("rm", "-r", folder)
    folder.symlink_to(big)
    write_the_number(site, folder)
    return big


def write_the_number(site, folder):
    found = re.search(r"write (\d+) in place of (\d+) into", site.up("a")["msg"])
    config = folder / "config"
    config.write_text(re.sub(f"of folder {found[2]}", f"of folder {found[1]}", config.read_text()))


@pytest.mark.parametrize(("verb", "more"), [(lifecycle.absent, {}), (lifecycle.rebuilt, {"fresh": True})])
def test_what_a_link_in_a_folders_place_leads_to_neither_goes_nor_is_said_to_be_removed(one, verb, more):
    """Lost: what another has by now in the folder to which the link leads; or a tenant's data, which stay there."""
    big, folder = moved_away(one), one.container("a").folder
    assert one.up("a")["instances"][0]["state"] == "running"
    one.do(lifecycle.stopped, "a")
    unmounted(one, "a")
    before = sorted(os.listdir(big))
    for check in (True, False):
        said = one.do(verb, "a", check=check, **more)["msg"]
        assert f"{folder}: is a link to {big}, and what belongs here has to lie here itself: nothing is touched" in said
        assert sorted(os.listdir(big)) == before
    assert followed(said)
    write_the_number(one, Path(folder))
    assert not one.do(lifecycle.absent, "a").get("failed")
    assert (sorted(os.listdir(big)), os.path.lexists(folder)) == (before, False)


def test_the_root_to_which_a_link_leads_is_not_said_to_be_removed(one):
    """Lost: the same, where only the file with the root was moved."""
    unmounted(one, "a")
    big = file(one).rename(one.folder / "big")
    file(one).symlink_to(big)
    said = one.do(lifecycle.absent, "a")["msg"]
    assert f"a/root.ext4: is a link to {big}, and what belongs here has to lie here itself" in said
    assert big.exists()
    assert followed(said)
    assert not one.do(lifecycle.absent, "a").get("failed")
