# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that lies on a bigger disk, bound to its folder or by a link, and of which a copy, or half of one, lies
beside that, as somebody brings it into a plain folder. Lost: all that it has written since, to a start of the former
disk that the mount had hidden, or of half a copy; or to who removes "a copy", or moves "the guest" back, as printed.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.files.printed_moves import followed, steps, typed
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, OWN

VERBS = pytest.mark.parametrize(
    ("verb", "options"),
    [("running", {}), ("rebooted", {}), ("absent", {}), ("rebuilt", {"fresh": True})],
    ids=["running", "rebooted", "absent", "rebuilt"],
)
NAMES = pytest.mark.parametrize("end", ["new", "all"])


@pytest.fixture
def folder(site):
    """The folder of guest a, which is stopped."""
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    folder = site.folder / "guests-files/a"
    yield folder
    while subprocess.run(["mountpoint", "-q", folder], check=False).returncode == 0:
        subprocess.run(["umount", "-l", folder], check=True)


def write(folder):
    with (folder / "disk.raw").open("ab") as disk:
        disk.write(OWN)


def is_its_own(folder):
    return (folder / "disk.raw").read_bytes().endswith(OWN)


def cover(site, folder):
    """Copy the folder to a bigger disk, bind that over it, and use it there."""
    big = site.folder / "big"
    subprocess.run(["cp", "-a", folder, big], check=True)
    subprocess.run(["mount", "--bind", big, folder], check=True)
    write(folder)


def half(folder, new):
    """What is there of a copy whose power was cut."""
    new.mkdir()
    for name in ("domain.xml", "disk.uuid", "kernel", "initrd", "console.log"):
        subprocess.run(["cp", "-a", folder / name, new], check=True)
    (new / "disk.raw").write_bytes((folder / "disk.raw").read_bytes()[: 1 << 20])


def others(site):
    with site.host() as host:
        return str(reconcile(host, Change(False), 5.0)["others"])


def is_refused(site, verb, options, path):
    before = site.files("a")
    said = site.do(verb, "a", **options).get("msg") or ""
    assert f"{path} is a copy of {path.with_suffix('')}, or half of one: nothing is started or removed" in said
    return site.files("a") == before and path.exists()


@VERBS
def test_the_former_disk_is_not_taken_for_its_own(site, folder, verb, options):
    cover(site, folder)
    told = site.do("absent", "a")["msg"]
    copy, unmount, put = steps(told)
    assert [typed(line).returncode == 0 for line in (copy, unmount, put)] == [True, True, False]
    new = folder.with_name("a.new")
    assert (is_its_own(folder), is_its_own(new)) == (False, True)
    assert is_refused(site, verb, options, new)
    assert "remove it by hand" not in others(site)
    folder.rename(site.folder / "former")  # as printed: what the mount has hidden
    assert typed(put).returncode == 0
    assert is_its_own(folder)
    done = site.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]


@NAMES
@VERBS
def test_half_a_copy_is_no_moved_guest(site, folder, verb, options, end):
    """The bigger disk is not mounted since the host's boot."""
    new = folder.with_name(f"a.{end}")
    half(folder, new)
    folder.rename(site.folder / "not-mounted")
    folder.mkdir()
    said = site.do(verb, "a", **options)["msg"]
    assert f"{new} is a copy of {folder}, or half of one" in said
    assert f"see that what {folder} was on is mounted" in said
    for text in (said, others(site)):
        assert "move it back" not in text
        assert "by hand" not in text
    subprocess.run(["mount", "--bind", site.folder / "not-mounted", folder], check=True)
    assert followed(site.do("absent", "a")["msg"])
    if end == "all":
        assert is_refused(site, verb, options, new)
        new.rename(site.folder / "aside")
    done = site.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]


@pytest.mark.parametrize("verb", ["running", "absent"])
def test_nor_is_it_where_a_link_leads_to_what_is_not_mounted(site, folder, verb):
    big = site.folder / "big/a"
    big.parent.mkdir()
    folder.rename(big)
    folder.symlink_to(big)
    new = folder.with_name("a.new")
    half(big, new)
    big.parent.rename(site.folder / "not-mounted")
    said = site.do(verb, "a")["msg"]
    assert "is the guest of a" not in said
    assert "half of one" in said if verb == "running" else "only the link says where the data are" in said


def test_one_that_runs_goes_on_and_is_stopped(site, folder):
    """Lost: each daily provision of a guest that runs, as its operator begins to copy it; and the way on: its stop."""
    cover(site, folder)
    assert not site.do("running", "a").get("failed")
    half(folder, folder.with_name("a.new"))
    done = site.do("running", "a")
    assert not done.get("failed"), done["msg"]
    assert is_refused(site, "rebooted", {}, folder.with_name("a.new"))
    assert site.virt.domain("a").active
    assert not site.do("stopped", "a").get("failed")


def test_what_is_left_of_another_of_its_name_keeps_no_new_one(site, folder):
    """Lost: a name, for a folder that is nobody's copy any more."""
    half(folder, folder.with_name("b.new"))
    done = site.provision("b", flavor=BARE)
    assert not done.get("failed"), done.get("msg")
    assert os.path.isdir(folder.with_name("b.new"))
