# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root that lies in another container's place, say after a backup was put back. If these fail, one tenant's key opens
another's root, or it goes with the end of an instance that is not its own.

Tests hypervisors/lxc/own_root.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import make_empty
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    own_root,
    private_nodes,
)
from ansible_collections.hetero.compute.tests.in_time import in_time
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at

ANOTHERS = "a/root.ext4: this is the root of container b, not of a: put each back in its own place (mv"
COPY = "a/root.ext4: this is a copy of the root of container b, or has taken its UUID: not a's: remove nothing: move"
NOT_OWN = "root.ext4: this is not the root that was made for a (its file system is "
#: What may lie in the place of a configuration.
ODD = {
    "link to itself": lambda path: path.symlink_to(path.name),
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "huge": lambda path: path.write_text("#" * (1 << 21)),
}


@pytest.fixture
def two(site):
    """Containers a of jo and b of bo, which are stopped, with a file of their own each."""
    for name, owner, key in (("a", "jo", KEY), ("b", "bo", OTHER_KEY)):
        site.claim(name, flavor=SMALL, owner=owner, key=key)
        site.up(name)
        top(site, name).joinpath("own").write_text(f"{name}'s")
        site.do(lifecycle.stopped, name)
        disks.unmount(site.container(name), site.here.disks)
    return site


def top(site, name):
    return Path(disks.root_of(site.container(name)), "root")


def swap(site):
    a, b = (Path(disks.file_of(site.container(name))) for name in "ab")
    a.rename(a.with_name("x"))
    b.rename(a)
    a.with_name("x").rename(b)


def own_data(site):
    """What lies in the two files, wherever they are, and who may enter: {name: (file, keys)}."""
    found = {}
    for name in "ab":
        said = []
        for path in ("/root/own", "/root/.ssh/authorized_keys"):
            argv = ["debugfs", "-R", f"cat {path}", disks.file_of(site.container(name))]
            said.append(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        found[said[0]] = (KEY in said[1], OTHER_KEY in said[1])
    return found


def found_by_reconcile(site, name):
    with site.host() as host:
        looks = reconciliation.reconcile(host, Change(False), 5.0)["instances"]
    return [one["found"] for look in looks if look["instance"] == name for one in look["found"]]


def test_a_root_of_another_is_not_touched(two):
    """Lost: bob's root: jo's key was written into it and it ran as jo's; or it went with the end of jo's container."""
    before = own_data(two)
    assert before == {"a's": (True, False), "b's": (False, True)}
    swap(two)
    with two.host() as host:
        failed = disks.restore(host.config.lxc.lxcpath, two.here.disks)  # as at a boot of the host
    assert sorted(failed) == ["a", "b"]
    assert ANOTHERS in failed["a"]
    assert any(ANOTHERS in found for found in found_by_reconcile(two, "a"))
    verbs = [two.up, partial(two.do, lifecycle.stopped), partial(two.do, lifecycle.rebooted)]
    verbs += [partial(two.do, lifecycle.rebuilt, fresh=True), partial(two.do, lifecycle.absent)]
    for verb in verbs:
        assert ANOTHERS in verb("a")["msg"], verb
        assert not two.container("a").running
        assert own_data(two) == before
    assert [one["instance"] for one in two.info()["instances"]] == ["a", "b"]
    swap(two)
    for name in "ab":
        result = two.up(name)
        assert result["instances"][0]["state"] == "running", result["msg"]
        assert top(two, name).joinpath("own").read_text() == f"{name}'s"


def test_one_that_runs_is_not_ended_for_a_start_that_would_be_refused(two):
    """Lost: a running instance, to a reboot after which it does not start; or its root, to the printed way."""
    for name in "ab":
        two.up(name)
    swap(two)
    for verb in (lifecycle.rebooted, lifecycle.stopped):
        assert ANOTHERS in two.do(verb, "a")["msg"]
        assert two.container("a").running
    swap(two)
    assert not two.do(lifecycle.rebooted, "a").get("failed")
    assert top(two, "a").joinpath("own").read_text() == "a's"


def test_one_of_an_earlier_release_is_taken_as_it_is_and_known_from_then_on(two):
    """Lost: a container, to an upgrade; or, after it, what is in another's root."""
    before = {}
    for name in "ab":
        config = Path(two.container(name).config_file)
        before[name] = own_root.recorded(two.container(name).config_file)
        config.write_text(re.sub(r"(?m)^# hetero\.compute: root .*\n", "", config.read_text()))
        assert own_root.recorded(two.container(name).config_file) is None
    assert not two.up("a", check=True).get("failed")
    assert own_root.recorded(two.container("a").config_file) is None, "a look changes nothing"
    assert two.up("a")["instances"][0]["state"] == "running"
    found_by_reconcile(two, "b")
    assert {name: own_root.recorded(two.container(name).config_file) for name in "ab"} == before
    assert two.up("a")["changed"] is False
    two.do(lifecycle.stopped, "a")
    disks.unmount(two.container("a"), two.here.disks)
    swap(two)
    assert ANOTHERS in two.up("a")["msg"]
    swap(two)


def test_the_printed_way_makes_a_root_its_own(two):
    """Lost: a root that was put back on purpose, copied into a new file system."""
    path = Path(disks.file_of(two.container("a")))
    shutil.move(path, two.folder / "kept")
    path.touch(0o600)
    path.open("r+b").truncate(1 << 30)
    make_empty(str(path))
    for verb in (two.up, partial(two.do, lifecycle.absent)):
        said = verb("a")["msg"]
        assert NOT_OWN in said
    path.unlink()
    shutil.copy(two.folder / "kept", path)
    subprocess.run(["e2fsck", "-f", "-y", path], check=False, capture_output=True)
    subprocess.run(["tune2fs", "-U", "random", path], check=True, capture_output=True)
    # as after a day, and not a second: tune2fs wants one that was checked since it was mounted last
    subprocess.run(["tune2fs", "-T", "20260101", path], check=True, capture_output=True)
    said = two.up("a")["msg"]
    assert NOT_OWN in said
    line = re.search(r"e2fsck -fp \S+; tune2fs -U \S+ [^\s;]+", said)[0]
    subprocess.run(line, shell=True, check=True, capture_output=True)
    assert two.up("a")["instances"][0]["state"] == "running"
    assert top(two, "a").joinpath("own").read_text() == "a's"
    assert not two.do(lifecycle.absent, "a").get("failed")


def test_a_folder_of_any_name_beside_them_is_in_nobodys_way(two):
    """Lost: every start and end on a host, to a copy that somebody made by hand (`cp -a web 'web old'`)."""
    (two.lxcpath / "web old").mkdir()
    (two.lxcpath / "web old" / "config").write_text("lxc.uts.name = web\n")
    config = Path(two.container("a").config_file)
    config.write_text(re.sub(r"(?m)^# hetero\.compute: root .*\n", "", config.read_text()))
    assert two.up("a")["instances"][0]["state"] == "running"
    assert not two.do(lifecycle.absent, "a").get("failed")
    shutil.rmtree(two.lxcpath / "web old")


def test_one_that_took_the_uuid_of_another_is_not_told_to_be_anothers(two):
    """Lost: a neighbour's root, moved by an operator as told, since root in a privileged container set its own UUID."""
    uuid = own_root.recorded(two.container("b").config_file)
    root = Path(disks.file_of(two.container("a")))
    # it wants one that was checked since it was mounted, which on a busy machine is a second after it was made
    subprocess.run(["e2fsck", "-f", "-y", root], check=False, capture_output=True)
    subprocess.run(["tune2fs", "-U", uuid, root], check=True, capture_output=True)
    said = two.do(lifecycle.absent, "a")["msg"]
    assert COPY in said
    assert ANOTHERS not in said
    root.rename(two.folder / "kept")  # as printed
    assert not two.do(lifecycle.absent, "a").get("failed")
    assert two.up("b")["instances"][0]["state"] == "running"


def of_an_earlier_release(site, *names):
    """Its configuration does not say which is its root."""
    for name in names:
        config = Path(site.container(name).config_file)
        config.write_text(re.sub(r"(?m)^# hetero\.compute: root .*\n", "", config.read_text()))


def files(site, name):
    """All in a container's folder, for its root is not mounted: {path: content}."""
    folder = Path(site.container(name).folder)
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20}


@pytest.mark.parametrize("older", ["", "a", "b", "ab"])
def test_a_copy_of_anothers_root_is_not_started_nor_called_its_own(two, older):
    """Lost: all that bo has in b, to jo: a copy of b's root was put back into a's place, and started with jo's key; or
    not before an operator had typed what was printed. Whatever of the two was made by an earlier release.
    """
    a, b = (Path(disks.file_of(two.container(name))) for name in "ab")
    kept = a.rename(two.folder / "kept")
    shutil.copy(b, a)
    of_an_earlier_release(two, *older)
    before = files(two, "a"), own_data(two)
    verbs = [two.up, partial(two.do, lifecycle.rebooted), partial(two.do, lifecycle.rebuilt, fresh=True)]
    for verb in [*verbs, partial(two.do, lifecycle.absent)]:
        said = verb("a")["msg"]
        assert "root of container b" in said
        assert "remove nothing: move the copy out of its folder" in said
        assert "tune2fs" not in said
    assert any("root of container b" in found for found in found_by_reconcile(two, "a"))
    assert (disks.is_mounted(two.container("a"), two.here.disks), two.container("a").running) == (False, False)
    assert (files(two, "a"), own_data(two)) == before
    a.rename(two.folder / "copy")  # as printed
    kept.rename(a)
    for name in "ab":
        assert two.up(name)["instances"][0]["state"] == "running"
        assert top(two, name).joinpath("own").read_text() == f"{name}'s"


def test_a_copy_of_its_own_folder_is_in_no_containers_way(two):
    """Lost: the start of a container of an earlier release, to a copy that an operator made of it before an upgrade."""
    of_an_earlier_release(two, "a")
    shutil.copytree(two.container("a").folder, two.lxcpath / "a old")
    assert two.up("a")["instances"][0]["state"] == "running"
    shutil.rmtree(two.lxcpath / "a old")


def test_a_copy_of_its_own_folder_is_not_in_the_way_of_its_end(two):
    """Lost: a name and an address for good, to a copy, where the end was cut off after its configuration was gone."""
    shutil.copytree(two.container("a").folder, two.lxcpath / "a old")
    killed_at(private_nodes, "forget", lambda: two.do(lifecycle.absent, "a"))
    assert not two.container("a").defined
    assert not two.do(lifecycle.absent, "a").get("failed")
    shutil.rmtree(two.lxcpath / "a old")


@pytest.mark.parametrize("kind", ODD)
def test_what_cannot_be_read_is_in_nobodys_way(two, kind):
    """Lost: every verb on every container of a host, and its reconcile, to one odd file beside them: they waited for a
    pipe, or ended in a traceback, which says not which file it is.
    """
    of_an_earlier_release(two, "a")
    (two.lxcpath / "odd").mkdir()
    config = two.lxcpath / "odd" / "config"
    ODD[kind](config)
    with in_time(60):
        assert two.up("a")["instances"][0]["state"] == "running"
        assert not two.do(lifecycle.rebooted, "a").get("failed")
        with two.host() as host:
            (said,) = reconciliation.reconcile(host, Change(False), 5.0)["others"]
        assert said.startswith(f"{config}: cannot be read as a container's configuration (")
        assert two.info()["unclaimed"] == []
        assert set(disks.restore(str(two.lxcpath), two.here.disks)) <= {"odd"}
        assert not two.do(lifecycle.absent, "a").get("failed")
    shutil.rmtree(config.parent)


def test_a_root_is_nobodys_by_a_guess_while_it_may_be_that_of_one_that_cannot_be_read(two):
    """Lost: bo's root, which lies in a's place, to jo: of both nothing says any more which root was made for them."""
    two.claim("c", flavor=SMALL)
    of_an_earlier_release(two, "a")
    swap(two)
    config = Path(two.container("b").config_file)
    config.rename(two.folder / "config")
    ODD["pipe"](config)
    before = own_data(two)
    ways = {"a": f"may be the root of container b, .* {config}: cannot be read", "b": f"{config}: cannot be read"}
    with in_time(60):
        for name, way in ways.items():
            for verb in (two.up, partial(two.do, lifecycle.absent)):
                assert re.search(way, verb(name)["msg"])
            assert any(re.search(way, found) for found in found_by_reconcile(two, name))
    assert own_data(two) == before
    assert two.up("c")["instances"][0]["state"] == "running", "nobody else's root is in doubt"
    config.unlink()
    (two.folder / "config").rename(config)
    assert ANOTHERS in two.up("a")["msg"]
    swap(two)
    assert two.up("a")["instances"][0]["state"] == "running"
