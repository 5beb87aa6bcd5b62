# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose folder of containers is named by another path in its configuration (gpu_lxc_lxcpath), which leads to
the same folder by a link or a bind mount: /var/lib/lxc, then /srv/lxc. If this fails, each container is said to be a
copy of itself, and the line that is printed renames the container; or one that runs is started a second time.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


@pytest.fixture(params=["link", "bind mount"])
def other(request, site):
    """The other path to the folder of container a, which is stopped."""
    site.claim("a", flavor=SMALL, owner="jo", key=KEY)
    site.up("a")
    site.do(lifecycle.stopped, "a")
    disks.unmount(site.container("a"), site.here.disks)
    path = site.folder / "srv-lxc"
    if request.param == "link":
        path.symlink_to(site.lxcpath)
    else:
        path.mkdir()
        subprocess.run(["mount", "--bind", site.lxcpath, path], check=True)
    return path


def name_it(site, path):
    site.settings["lxcpath"] = str(path)
    site.config.write_text(json.dumps(site.settings))
    site.lxcpath = path


def test_no_printed_line_renames_the_container(site, other):
    former = site.lxcpath
    name_it(site, other)
    for verb in (lifecycle.running, lifecycle.stopped, lifecycle.rebuilt, lifecycle.absent):
        said = site.do(verb, "a", **({"fresh": True} if verb == lifecycle.rebuilt else {}))["msg"]
        assert f"{other}/a is its container's folder {former}/a by another path" in said
        assert f"name {former} again" in said
        assert "mv " not in said
    assert Path(disks.file_of(site.container("a"))).exists()
    name_it(site, former)
    assert site.up("a").get("msg") is None
