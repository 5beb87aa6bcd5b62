# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of all guests, moved or copied to a bigger disk, which the host's configuration names since. Their domains
still name the former one.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
OWN = b"a's own"


@pytest.fixture
def one(site):
    """Guest a, stopped, with something of its own on its disk."""
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    write(site, "guests-files")
    return site


def write(site, where):
    with (site.folder / where / "a/disk.raw").open("ab") as disk:
        disk.write(OWN)


def is_there(site, where="bigger"):
    return (site.folder / where / "a/disk.raw").read_bytes().endswith(OWN)


def bring(site, *command):
    subprocess.run([*command, site.folder / "guests-files", site.folder / "bigger"], check=True)
    site.configure(guests_folder=str(site.folder / "bigger"))


def as_printed(text):
    subprocess.run(re.search(r"\(((?:virsh|sed|mv) .*?)\)", text)[1], shell=True, check=True)


def found(site):
    with site.host() as host:
        (look,) = reconcile(host, Change(False), 5.0)["instances"]
    return [finding["found"] for finding in look["found"]]


def is_whole(site):
    done = site.do("running", "a")
    assert done["instances"][0]["state"] == "running", done.get("msg")
    assert [line["text"] for line in done["lines"] if "in place of" in line["text"]] == []
    assert found(site) == []


@pytest.mark.parametrize("defined", [True, False])
def test_a_moved_one_starts_from_there_as_printed(one, defined):
    """Lost: all that the guest has, to the rebuild that was printed as the way on."""
    if not defined:
        one.virt.domain("a").undefine()
    bring(one, "mv")
    said = one.do("running", "a")["msg"]
    assert "which is not there, in place of" in said
    assert "rebuild" not in said
    assert any("which is not there, in place of" in text for text in found(one))
    as_printed(said)
    is_whole(one)
    assert is_there(one)


def test_what_is_no_more_in_either_place_is_said_to_be_missing(one):
    """Lost: the word that a file has to be put back, to one that says that all was moved."""
    bring(one, "mv")
    (one.folder / "bigger/a/kernel").unlink()
    assert f"{one.folder}/guests-files/a/kernel: is missing" in one.do("running", "a")["msg"]


def test_where_a_copied_one_writes_is_said(one):
    """Lost: what the guest has written since, to who removes the former folder."""
    bring(one, "cp", "-a")
    done = one.do("running", "a")
    assert done["instances"][0]["state"] == "running"
    (said,) = [line["text"] for line in done["lines"] if "what its guest writes is in the former alone" in line["text"]]
    assert f"{said}: not touched" in found(one)
    write(one, "guests-files")
    for verb, options in (("absent", {}), ("rebuilt", {"fresh": True})):
        assert "in place of" in one.do(verb, "a", **options)["msg"]
    assert is_there(one, "guests-files")
    one.do("stopped", "a")
    newest = (one.folder / "guests-files/a/disk.raw").read_bytes()
    as_printed(said)
    is_whole(one)
    assert (one.folder / "bigger/a/disk.raw").read_bytes().startswith(newest)
