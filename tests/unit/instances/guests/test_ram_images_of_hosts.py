# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A RAM image, which has no root, asked for on a compute host. If these fail, a user gets a traceback, or an
instance is claimed that can never be made.
"""

from __future__ import annotations

import json
import platform

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_disks_in_others_places import disk, two

__all__ = ["two"]

SAID = "image ram is a RAM image, which has no root: it is for boards"


def take_in_ram(site, folder):
    for name in ("kernel", "initrd"):
        (folder / name).write_text(name)
    (folder / "image.json").write_text(json.dumps({"arch": platform.machine(), "ram": True}))
    with site.host() as host:
        host.images.import_image(str(folder), "ram")


@pytest.mark.parametrize("check", [True, False])
def test_a_rebuild_of_it_is_refused_before_anything_is_removed(two, tmp_path_factory, check):
    take_in_ram(two, tmp_path_factory.mktemp("ram"))
    number = disk(two, "a").stat().st_ino
    assert f"{SAID}: ask for another image" in two.do("rebuilt", "a", image="ram", check=check)["msg"]
    assert disk(two, "a").stat().st_ino == number
    assert two.info(instance="a")["instances"][0]["state"] == "stopped"


def test_nothing_is_claimed_for_it(site, tmp_path_factory):
    take_in_ram(site, tmp_path_factory.mktemp("ram"))
    with pytest.raises(NoneFree, match=SAID):
        site.provision("c", image="ram")
    assert site.info()["instances"] == []
