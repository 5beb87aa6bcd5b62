# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests whose folders were moved by hand, as tests/unit/instances/test_moved_containers.py has it of containers. If
these fail, a disk that is all that a tenant has is said to be nobody's, or is lost to one who is made where it lies.

Tests compute_host/host_claims.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import KG1

BARE = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
#: What ends it, or makes a new one in its place.
NOT_SAID = ("commands of LXC", "nobody wants it", "nobody has it", "fresh=true", "provision_instance", "be made anew")
VERBS = ("running", "rebooted", "stopped", "absent")


@pytest.fixture
def win(site):
    """win is made, and stopped, with something of its own on its disk."""
    site.provision("win", flavor=BARE)
    site.do("stopped", "win")
    with folder(site, "win").joinpath("disk.raw").open("ab") as disk:
        disk.write(b"win's own")
    return site


def folder(site, name):
    return site.folder / "guests-files" / name


def is_kept(site, name):
    return folder(site, name).joinpath("disk.raw").read_bytes().endswith(b"win's own")


def looked(site):
    """What reconcile says: ({instance: [findings]}, [of no instance])."""
    with site.host() as host:
        done = reconcile(host, Change(False), 5.0)
    return {look["instance"]: [one["found"] for one in look["found"]] for look in done["instances"]}, done["others"]


def moved(site, path):
    own = folder(site, "win")
    return f"{path} is the guest of win, moved: not touched: end nothing of it, and move it back to {own}"


@pytest.mark.parametrize("runs", [True, False])
def test_a_guest_that_was_moved_aside_is_said_to_be_its_claims(win, runs):
    """Lost: the only disk of an instance, to who ends "by the commands of libvirt" what reconcile calls nobody's."""
    if runs:
        win.do("running", "win")
    aside = folder(win, "win.aside")
    folder(win, "win").rename(aside)
    found, others = looked(win)
    assert others == [one["text"] for one in win.info()["unclaimed"]] == [moved(win, aside)]
    assert f"/win/domain.xml: is gone, and win has run: nothing is made in its place: {others[0]}" in found["win"][0]
    for verb in VERBS:
        said = win.do(verb, "win")["msg"]
        assert moved(win, aside) in said
        assert not [word for word in NOT_SAID if word in said]
    aside.rename(folder(win, "win"))
    assert win.do("running", "win")["instances"][0]["state"] == "running"
    assert is_kept(win, "win")


def test_a_name_under_which_anothers_guest_lies_is_given_to_nobody(win):
    """Lost: win's disk, to who asks for lin: its folder was called so, and lin would be made in it."""
    folder(win, "win").rename(folder(win, "lin"))
    with pytest.raises(NoneFree) as refused, win.host() as host:
        present(host, win.request("lin", flavor=BARE, owner="bo"), Change())
    assert moved(win, folder(win, "lin")) in str(refused.value)
    assert is_kept(win, "lin")


@pytest.mark.parametrize("lin", ["claimed", "gone"])
def test_a_guest_in_the_place_of_another_is_said_to_be_whose_it_is(win, lin):
    """Lost: win's disk, to lin, which is made where it lies, for nothing says that it ran; or to a rebuild, which was
    printed as the way for lin: its kernel is missing.
    """
    if lin == "claimed":
        with win.host() as host:
            present(host, win.request("lin", flavor=BARE, owner="bo"), Change())
    else:
        win.provision("lin", flavor=BARE, owner="bo")
        win.do("stopped", "lin")
        folder(win, "lin").rename(win.folder / "lost")
    folder(win, "win").rename(folder(win, "lin"))
    words = moved(win, folder(win, "lin"))
    found, others = looked(win)
    assert others == []
    for name in ("win", "lin"):
        assert len(found[name]) == 1
        for said in (*found[name], *(win.do(verb, name)["msg"] for verb in VERBS)):
            assert words in said
            assert not [word for word in NOT_SAID if word in said]
    domain = win.virt.domain("lin")
    assert not (domain.defined and domain.active)
    assert is_kept(win, "lin")
    folder(win, "lin").rename(folder(win, "win"))
    assert win.do("running", "win")["instances"][0]["state"] == "running"
    assert is_kept(win, "win")
