# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's folder that was copied to a bigger disk (cp -a), bound over the former one (whose number was written as
printed), and used since; and that is brought into a plain folder. Lost: all that its tenant has written since: the next
start takes the former root, which the mount has hidden, without a word; an end says that all is removed.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import steps, typed
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


def number_as_printed(site):
    new, old = re.search(r"write (\d+) in place of (\d+) into the line", site.up()["msg"]).groups()
    config = Path(site.container().config_file)
    config.write_text(config.read_text().replace(f"of folder {old}\n", f"of folder {new}\n"))


def root(site):
    """Where the tenant's root is seen."""
    pid = site.container().init_pid
    return Path(f"/proc/{pid}/root") if pid else Path(disks.root_of(site.container()))


@pytest.fixture
def covered(site):
    """Its site; it is stopped, and has what its tenant wrote on the bigger disk alone."""
    site.claim(flavor=SMALL)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    folder, big = Path(site.container().folder), site.folder / "big"
    subprocess.run(["cp", "-a", "--sparse=always", folder, big], check=True)
    subprocess.run(["mount", "--bind", big, folder], check=True)
    try:
        number_as_printed(site)
        assert not site.up().get("failed")
        (root(site) / "root/tenant").write_text("mine")
        site.do(lifecycle.stopped)
        yield site
    finally:
        if site.container().defined and site.container().running:
            site.container().stop()
        subprocess.run(f"umount -l {folder}/rootfs; umount -l {folder}", shell=True, check=False)


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.rebooted, lifecycle.absent])
def test_the_former_root_is_not_taken_for_its_own(covered, verb):
    folder = Path(covered.container().folder)
    copy, unmount, put = steps(covered.do(lifecycle.absent)["msg"])
    assert f"{folder}/rootfs ext4" in typed(copy).stdout  # to be unmounted first, as is printed
    disks.unmount(covered.container(), covered.here.disks)
    assert [typed(line).returncode == 0 for line in (copy, unmount, put)] == [True, True, False]
    new = folder.with_name("ml-8.new")
    assert f"{new} is a copy of {folder}, or half of one: nothing is started or removed" in covered.do(verb)["msg"]
    assert (folder / "config").exists()
    folder.rename(covered.folder / "former")  # as printed: what the mount has hidden
    assert typed(put).returncode == 0
    number_as_printed(covered)
    assert not covered.up().get("failed")
    assert (root(covered) / "root/tenant").read_text() == "mine"
    assert not covered.do(verb).get("failed")
