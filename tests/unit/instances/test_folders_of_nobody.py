# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies in the folder of a new container before it is made: somebody's own, or what a killed run left. If these
fail, the first is removed for a container of that name, or the second holds up the name for good.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    id_maps,
    identity,
    new_container,
    own_root,
    private_nodes,
)
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import top
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at

SOMEBODYS = "lxc/a is not empty, and nothing was made there for this claim: nothing of it is removed: see whose it is"
#: Where the making of a container is cut off, in the order in which it comes there.
STEPS = [
    (disks, "make_empty"),
    (id_maps, "shift"),
    (identity, "give_id"),
    (own_root, "record"),
    (new_container, "put_back"),
]


def folder_of(site):
    return Path(site.container("a").folder)


def stays(site, is_there):
    """Whether each verb leaves it alone, and says so; and, moved away as printed, it is in nobody's way."""
    for verb, options in ((lifecycle.running, {}), (lifecycle.rebuilt, {"fresh": True}), (lifecycle.absent, {})):
        said = site.do(verb, "a", **options)
        assert SOMEBODYS in said["msg"], verb
        assert is_there(folder_of(site)), verb
        assert site.info()["instances"][0]["state"] == "claimed", verb  # its end was not begun
    folder_of(site).rename(site.folder / "moved")
    assert site.up("a")["instances"][0]["state"] == "running"
    assert is_there(site.folder / "moved")
    assert not site.do(lifecycle.absent, "a").get("failed")


@pytest.mark.parametrize("config", ["config.edit", "config"])
def test_a_container_that_somebody_makes_by_hand_stays(site, config):
    """Lost: all that somebody has in a container of the own, whose configuration is just being written."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    (folder_of(site) / "rootfs/etc").mkdir(parents=True)
    (folder_of(site) / "rootfs/etc/only").write_text("all that somebody has")
    (folder_of(site) / config).write_text(f"lxc.rootfs.path = dir:{folder_of(site)}/rootfs\n")
    stays(site, lambda folder: (folder / "rootfs/etc/only").exists())


def test_a_root_of_which_no_claim_is_known_stays(site):
    """Lost: a tenant's root, which is all there is: the database is older than it, and its configuration was lost."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    site.up("a")
    top(site, "a").joinpath("own").write_text("jo's")
    site.do(lifecycle.stopped, "a")
    disks.unmount(site.container("a"), site.here.disks)
    with site.host() as host:
        host.store.release("a")
    Path(site.container("a").config_file).unlink()
    site.claim("a", flavor=SMALL, owner="bo", key=OTHER_KEY)

    def is_there(folder):
        argv = ["debugfs", "-R", "cat /root/own", f"{folder}/root.ext4"]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "jo's"

    stays(site, is_there)


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _owner, step in STEPS])
def test_what_a_killed_run_left_is_made_anew(site, owner, step):
    """Lost: a name for good, to a power cut while its container was made, or after that while the rest was removed; or
    the instance, which LXC started at the boot before it was finished, and which then was taken for another's.
    """
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    killed_at(owner, step, lambda: site.up("a"))
    subprocess.run(["lxc-autostart", "-P", str(site.lxcpath)], check=False)  # as a boot does
    assert not (site.container("a").defined and site.container("a").running)
    killed_at(private_nodes, "forget", lambda: site.do(lifecycle.absent, "a"))
    assert site.up("a")["instances"][0]["state"] == "running"
    assert "lxc.start.auto = 1" in Path(site.container("a").config_file).read_text()
    assert not (folder_of(site) / new_container.UNFINISHED).exists()
    assert not site.do(lifecycle.absent, "a").get("failed")
    assert site.nothing_is_left()


def test_a_container_that_was_made_and_not_finished_starts_with_its_host_from_its_first_start_on(site):
    """Lost: an instance, at each boot of its host, whose making was cut off after its claim knew of it."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    killed_at(new_container, "put_back", lambda: site.up("a"))
    assert "lxc.start.auto = 0" in Path(site.container("a").config_file).read_text()
    assert site.up("a")["instances"][0]["state"] == "running"
    assert "lxc.start.auto = 1" in Path(site.container("a").config_file).read_text()
    assert not (folder_of(site) / new_container.UNFINISHED).exists()


def test_the_mark_of_what_nobody_had_goes_last(site, monkeypatch):
    """Lost: a name for good, to the removal of a half-made container, killed when no more than its mark was gone."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    killed_at(id_maps, "shift", lambda: site.up("a"))
    box = site.container("a")
    names = {path.name for path in folder_of(site).iterdir()} - {new_container.UNFINISHED}
    gone = []

    def removed(path, *_deadline):
        assert (folder_of(site) / new_container.UNFINISHED).exists()
        gone.append(Path(path).name)
        if len(gone) == len(names):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(new_container, "remove_tree", removed)
        with pytest.raises(KeyboardInterrupt):
            new_container.remove(box, None, site.here.disks)
    assert set(gone) == names
    shutil.rmtree(folder_of(site) / "rootfs")
    assert site.up("a")["instances"][0]["state"] == "running"
