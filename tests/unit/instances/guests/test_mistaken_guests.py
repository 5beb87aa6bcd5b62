# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that libvirt or the host mistakes for another or for none: by a name that is another's UUID or number, by an
answer of libvirt's that is not true, by a file that is gone. If these fail, a disk that somebody works on is removed.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Domain, Libvirt
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

GONE = "ml-9/domain.xml: is gone, and ml-9 has run: nothing is made in its place"
BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})


@pytest.fixture
def kept(site):
    """ml-9 runs, and has written something to its disk."""
    site.provision("ml-9")
    with (site.folder / "guests-files/ml-9/disk.raw").open("ab") as disk:
        disk.write(b"ml-9's own")
    return site


def is_kept(site):
    disk = site.folder / "guests-files/ml-9/disk.raw"
    return disk.exists() and disk.read_bytes().endswith(b"ml-9's own")


@pytest.mark.parametrize("name", ["17", "uuid"])
def test_a_guest_is_not_called_as_virsh_calls_another(kept, name):
    """Lost: a guest, ended and undefined, by who called theirs by its UUID, or by its number."""
    libvirt = Libvirt(Deadline(30.0))
    if name == "uuid":
        name = guests.uuid_of("ml-9", libvirt)
    with pytest.raises(BadInput, match="virsh takes it for a domain's number or UUID: choose another name"):
        kept.provision(name, flavor=BARE)
    assert [one["instance"] for one in kept.info()["instances"]] == ["ml-9"]
    with pytest.raises(BadInput, match="virsh takes it"):
        libvirt.domain(name).stop()
    assert libvirt.domain("ml-9").active
    assert is_kept(kept)


@pytest.mark.parametrize("flavor", [BARE, KG1], ids=["bare", "with a card"])
def test_a_guest_is_not_taken_for_a_domain_of_its_name_that_is_gone(site, flavor):
    """Lost: a guest at its first start, for a card that a domain of its name had, which somebody undefined."""
    domain = site.virt.define("a")
    site.virt.attach(domain, CARD, live=False)
    domain.undefine()
    assert site.table() == {CARD: "domain:a"}
    assert not site.provision("a", flavor=flavor).get("failed")
    assert site.table() == ({} if flavor is BARE else {CARD: "domain:a"})
    assert not site.do("absent", "a").get("failed")
    assert site.table() == {}


def test_a_guest_gets_not_what_a_domain_of_its_name_has_that_libvirt_does_not_list(site):
    """Lost: the card of a domain that runs, by the name that it has: libvirt's driver did not start."""
    domain = site.virt.define("a")
    site.virt.attach(domain, CARD, live=False)
    (site.folder / "forgot").touch()
    with pytest.raises(NoneFree, match="there is a domain a already that is no instance"):
        site.provision("a", flavor=BARE)
    assert site.table() == {CARD: "domain:a"}


def test_a_guest_that_libvirt_forgets_in_the_middle_of_its_end_keeps_its_disk(kept, monkeypatch):
    """Lost: the disk of a guest that runs on, as libvirt was restarted meanwhile, and its driver did not start."""
    monkeypatch.setattr(Domain, "stop", lambda _self: (kept.folder / "forgot").touch())
    said = kept.do("absent", "ml-9")
    assert "ml-9.xml: by this file of libvirt's it runs, and libvirt lists no such domain: restart" in said["msg"]
    assert is_kept(kept)


@pytest.mark.parametrize("verb", ["absent", "rebuilt"])
def test_a_guest_that_libvirt_does_not_list_and_that_runs_keeps_its_disk(kept, verb):
    """Lost: the word that a guest runs on, without a claim, at an address and with a card that are given to others."""
    (kept.folder / "forgot").touch()
    said = kept.do(verb, "ml-9", **({"fresh": True} if verb == "rebuilt" else {}))
    assert said["failed"], said
    assert "ml-9.xml: by this file of libvirt's it runs, and libvirt lists no such domain: restart" in said["msg"]
    assert is_kept(kept)
    assert kept.table() == {CARD: "domain:ml-9"}
    (kept.folder / "forgot").unlink()
    assert not kept.do("absent", "ml-9").get("failed")
    assert (kept.table(), kept.files("ml-9")) == ({}, [])


@pytest.mark.parametrize("verb", ["running", "stopped", "rebooted"])
def test_a_guest_that_libvirt_does_not_list_is_neither_started_twice_nor_said_to_be_stopped(kept, verb):
    """Lost: a disk, which two guests write to; or that it runs, to who is told that it is stopped."""
    (kept.folder / "forgot").touch()
    with kept.host() as host:
        (look,) = reconcile(host, Change(False), 5.0)["instances"]
    assert len(look["found"]) == 1
    assert "by this file of libvirt's it runs, and libvirt lists no such domain" in look["found"][0]["found"]
    assert "ml-9.xml: by this file of libvirt's it runs" in kept.do(verb, "ml-9", timeout=20)["msg"]
    (kept.folder / "forgot").unlink()
    assert not kept.do("stopped", "ml-9").get("failed")
    assert is_kept(kept)


@pytest.mark.parametrize("gone", ["ml-9/domain.xml", "."])
def test_a_guest_whose_files_are_gone_is_not_made_anew(kept, gone):
    """Lost: a disk, by a start, for the file beside it that says that it is whole; or that it is not mounted."""
    kept.do("stopped", "ml-9")
    folder = kept.folder / "guests-files"
    (folder / gone).rename(kept.folder / "away")
    for verb, check in [(verb, check) for verb in ("running", "rebooted", "stopped") for check in (True, False)]:
        said = kept.do(verb, "ml-9", check=check)
        assert said["failed"], said
        assert f"{GONE}: put it back (is its file system mounted?)" in said["msg"]
    assert kept.info()["instances"][0]["state"] in ("stopped", "error")
    if gone == ".":
        assert not folder.exists()
    (kept.folder / "away").rename(folder / gone)
    assert not kept.do("running", "ml-9").get("failed")
    assert is_kept(kept)


def test_a_guest_whose_files_are_gone_is_made_anew_by_its_tenants_word(kept):
    """Lost: an instance for ever, where nobody has its files any more."""
    kept.do("stopped", "ml-9")
    (kept.folder / "guests-files").rename(kept.folder / "away")
    assert kept.do("rebuilt", "ml-9")["failed"]
    assert kept.do("rebuilt", "ml-9", fresh=True)["instances"][0]["state"] == "running"
    assert not is_kept(kept)


def test_a_domain_whose_name_has_a_space_is_no_other(site):
    """Lost: an instance's name, and the end of its lease, by an operator's copy of its domain."""
    site.virt.define("ml-9 copy")
    assert not site.provision("ml-9").get("failed")
    assert not site.do("absent", "ml-9").get("failed")
    assert site.virt.domain("ml-9 copy").defined


@pytest.mark.parametrize("empty", [True, False])
def test_the_end_of_a_guest_that_is_not_mounted_is_not_said_to_be_done(kept, empty):
    """Lost: that a disk is there still, to who hears that guest and disk are removed, and gives its card to others."""
    kept.do("stopped", "ml-9")
    folder = kept.folder / "guests-files/ml-9"
    folder.rename(kept.folder / "unmounted")
    if empty:
        folder.mkdir()
    said = kept.do("absent", "ml-9")
    assert said["failed"], said
    assert "guests-files/ml-9: its root is not to be seen here, and ml-9 has run: nothing of it" in said["msg"]
    assert [(one["instance"], one["state"]) for one in kept.info()["instances"]] == [("ml-9", "stopped")]
    assert kept.table() == {CARD: "domain:ml-9"}
    if empty:
        folder.rmdir()
    (kept.folder / "unmounted").rename(folder)
    assert kept.do("running", "ml-9")["instances"][0]["state"] == "running"
    assert is_kept(kept)
    assert not kept.do("absent", "ml-9").get("failed")
    assert not folder.exists()


@pytest.mark.parametrize("name", ["disk.raw", "kernel"])
def test_a_guest_without_its_disk_or_kernel_is_said_so(kept, name):
    """Lost: a disk, to the end of who has its removed file open; or the word that it is gone while it can be found."""
    lost = kept.folder / "guests-files/ml-9" / name
    lost.rename(kept.folder / "away")
    word = "root" if name == "disk.raw" else "kernel"
    what = f"ml-9/{name}: is missing, and with it the guest's {word}: put the file"
    for verb in ("rebooted", "stopped") if word == "root" else ("rebooted",):
        assert what in kept.do(verb, "ml-9")["msg"]
        assert Libvirt(Deadline(30.0)).domain("ml-9").active
    with kept.host() as host:
        (look,) = reconcile(host, Change(False), 5.0)["instances"]
    assert [what in one["found"] for one in look["found"]] == [True]
    if word == "root":
        Libvirt(Deadline(30.0)).domain("ml-9").stop()
    else:
        assert not kept.do("stopped", "ml-9").get("failed")
    assert what in kept.do("running", "ml-9")["msg"]
    (kept.folder / "away").rename(lost)
    assert kept.do("running", "ml-9")["instances"][0]["state"] == "running"
    assert is_kept(kept)


def test_a_guest_that_is_down_where_libvirt_lists_nothing_is_not_said_to_be_ended(kept):
    """Lost: the next instance's address and card, to a guest that starts with its host and has no claim any more."""
    kept.do("stopped", "ml-9")
    file, forgot = kept.virt.root / "etc/libvirt/qemu/ml-9.xml", kept.folder / "forgot"
    forgot.touch()
    said = kept.do("absent", "ml-9")["msg"]
    assert f"{file}: by this file of libvirt's it is defined, and libvirt lists no such domain: restart" in said
    forgot.unlink()
    shown = file.read_text()
    file.rename(kept.folder / "aside")  # the printed way, where libvirt cannot read it
    assert kept.do("running", "ml-9")["instances"][0]["state"] == "running"
    assert file.read_text() == shown
    assert not kept.do("absent", "ml-9").get("failed")
    assert not file.exists()
