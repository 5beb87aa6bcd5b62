# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies in a container's folder and was not made for it: a copy of its root that its operator kept there before a
rebuild, another container's root that was moved aside there, a disk of data, a snapshot of LXC's (snaps/). If these
fail, an end or a rebuild removes it without a word.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import uuid_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, own_root
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import two

__all__ = ["two"]


VERBS = pytest.mark.parametrize(("verb", "options"), [(lifecycle.absent, {}), (lifecycle.rebuilt, {"fresh": True})])


@pytest.fixture
def a(site):
    """The folder of a container that runs."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    assert not site.up("a").get("failed")
    return Path(site.container("a").folder)


@pytest.mark.parametrize("name", ["root.ext4.before", "data.img", "snaps/snap0/rootfs/etc/hostname"])
@VERBS
def test_it_does_not_go_with_the_container(site, a, name, verb, options):
    only = a / name
    only.parent.mkdir(parents=True, exist_ok=True)
    only.write_text("all that somebody has")
    top = name.partition("/")[0]
    done = site.do(verb, "a", **options)
    assert only.exists(), "removed without a word"
    assert f"{a}: holds {top}, which was not made for the container and would go with it" in done["msg"]
    assert site.container("a").running
    (a / top).rename(site.folder / "elsewhere")
    assert not site.do(verb, "a", **options).get("failed")


@VERBS
def test_what_its_making_and_lxc_leave_there_goes_with_it(site, a, verb, options):
    """Lost: each end of a container into which somebody looked (lxc-attach -P), or one of whose writers was killed."""
    for name in ("a.log", "console.log.1", ".config.1234~"):
        (a / name).touch()
    for name in ("snaps", "host-key/left", "apparmor/lxc-a"):
        (a / name).mkdir(parents=True)
    assert not site.do(verb, "a", **options).get("failed")
    left = set() if verb == lifecycle.absent else {"config", "root.ext4", "rootfs", "hetero.d", "console.log"}
    assert {path.name for path in a.glob("*")} == left


def test_what_was_put_there_before_a_making_that_was_cut_off_is_ended(site):
    """Lost: it, as soon as the instance is made."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    folder = Path(site.container("a").folder)
    folder.mkdir(parents=True)
    (folder / "unfinished").touch()
    (folder / "data.img").write_text("all that somebody has")
    assert f"{folder}: holds data.img" in site.up("a")["msg"]
    assert (folder / "data.img").exists()
    (folder / "data.img").unlink()
    assert not site.up("a").get("failed")


def test_anothers_only_root_that_was_put_aside_there_does_not_go(two):
    """Lost: bo's only root. An operator found it in jo's place (it was said not to be jo's: "put its own back"), moved
    it aside in that folder, and put jo's own back; then jo ends the own instance.
    """
    for name in "ab":
        Path(disks.file_of(two.container(name))).rename(two.folder / f"{name}.kept")
    (two.folder / "a.kept").rename(disks.file_of(two.container("a")))
    aside = Path(two.container("a").folder, "root.ext4.not-a")
    (two.folder / "b.kept").rename(aside)
    assert uuid_of(str(aside)) == own_root.recorded(two.container("b").config_file)
    done = two.do(lifecycle.absent, "a")
    assert aside.exists(), "removed without a word"
    assert done.get("failed")
