# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All containers were copied (cp -a) to a bigger disk, and lxcpath of the configuration names it; what was copied
is still there, as anybody leaves it until the copies are seen to work. Lost: each verb: the printed way (write the
number of the folder into the line) was gone, and was printed again, with the same number in place of the same.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile


@pytest.fixture
def copied(site):
    site.claim(flavor=SMALL)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    old, new = site.lxcpath, site.folder / "srv"
    subprocess.run(["cp", "-a", "--sparse=always", old, new], check=True)
    site.lxcpath = new
    site.settings["lxcpath"] = str(new)
    site.config.write_text(json.dumps(site.settings))
    return site, old / "ml-8"


def write_the_number(site, said):
    new, old = re.search(r"write (\d+) in place of (\d+) into the line", said).groups()
    config = Path(site.container().config_file)
    config.write_text(config.read_text().replace(f"of folder {old}\n", f"of folder {new}\n"))
    return new != old


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.stopped, lifecycle.absent])
def test_the_printed_way_leads_on(copied, verb):
    site, former = copied
    assert write_the_number(site, site.do(verb)["msg"])
    said = site.do(verb)["msg"]
    assert f"{former}, of which that is a copy, is there still" in said
    assert said in found_by_reconcile(site, "ml-8")
    subprocess.run(re.search(r"\((mv .*?)\)", said)[1], shell=True, check=True)
    done = site.do(verb)
    assert not done.get("failed"), done["msg"]
    if verb is lifecycle.running:
        assert [text for text in found_by_reconcile(site, "ml-8") if "put back" not in text] == []
    assert former.with_name("ml-8.former").is_dir()  # to be removed by hand
    assert not former.exists()
