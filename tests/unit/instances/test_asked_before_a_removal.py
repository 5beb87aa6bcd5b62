# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that could not start again, as a look shows, is neither made anew nor ended. If these fail, its tenant
loses its root, or its work, to a verb that is refused afterwards.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import take_out

ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


def without_gpu(site):
    (gpu,) = site.info()["instances"][0]["gpus"]
    take_out(site, gpu)
    return f"has GPU {gpu}"


def flushed(site):
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    return "is not pinned on the bridge"


@pytest.mark.parametrize("fault", [without_gpu, flushed])
def test_neither_a_rebuild_nor_a_reboot_begins(site, fault):
    site.claim(flavor=ONE)
    site.up()
    own = Path(disks.root_of(site.container()), "root/own")
    own.write_text("own")
    said = fault(site)
    for check in (True, False):
        for verb, options in ((lifecycle.rebuilt, {"fresh": True}), (lifecycle.rebooted, {"how": lifecycle.HARD})):
            assert said in site.do(verb, check=check, **options)["msg"]
            assert own.exists()
            assert site.container().running
    assert site.info()["instances"][0]["state"] == "running"
