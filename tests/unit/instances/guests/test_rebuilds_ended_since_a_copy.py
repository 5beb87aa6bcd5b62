# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state folder of a host (database and records) put back from a backup of a moment in which a guest's rebuild was
cut off, before it had removed anything; the guests' own disk is what it is now. Lost: all that the guest had written
since that rebuild was ended, to a start.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guest import GuestWork
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import (
    BARE,
    found,
    is_there,
    write,
)

SAID = "was made after its rebuild was begun, and has run"


def killed(*_given, **_more):
    raise KeyboardInterrupt


def cut_off(site, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(GuestWork, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            site.do("rebuilt", "a", fresh=True)


@pytest.fixture
def older(site, monkeypatch):
    site.provision("a", flavor=BARE)
    cut_off(site, monkeypatch)
    state, backup = site.folder / "var/lib/hetero", site.folder / "backup"
    shutil.copytree(state, backup)
    assert not site.do("running", "a").get("failed")  # ends the rebuild
    site.do("stopped", "a")
    write(site, "guests-files")
    shutil.rmtree(state)
    shutil.copytree(backup, state)
    return site


def test_a_rebuild_that_was_ended_since_is_not_ended_once_more(older):
    for verb in ("running", "rebooted", "stopped", "running"):
        done = older.do(verb, "a")
        assert verb == "stopped" or SAID in done["msg"]
        assert is_there(older, "guests-files")
    (said,) = found(older)
    assert SAID in said
    assert "start_instance" not in said


@pytest.mark.parametrize("options", [{}, {"image": "bootable"}])
@pytest.mark.parametrize("check", [True, False])
def test_a_rebuild_to_what_it_has_makes_nothing_anew(older, options, check):
    """Lost: all of it, to a tenant who has rebuild_instance run each day, without fresh, for a newer image."""
    done = older.do("rebuilt", "a", check=check, **options)
    assert SAID in done["msg"]
    assert "fresh=true" in done["msg"]
    assert is_there(older, "guests-files")


def test_a_rebuild_that_was_cut_off_is_asked_for_again(site, monkeypatch):
    """If this fails, an ordinary rebuild that was killed is not to be asked for once more, as it was."""
    site.provision("a", flavor=BARE)
    write(site, "guests-files")
    cut_off(site, monkeypatch)
    assert not site.do("rebuilt", "a").get("failed")
    assert not is_there(site, "guests-files")


@pytest.mark.parametrize(("verb", "options"), [("rebuilt", {"fresh": True}), ("absent", {})])
def test_a_tenants_word_ends_it(older, verb, options):
    """As is printed. If this fails, nothing leads on."""
    done = older.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
    assert not (older.folder / "guests-files/a").exists() or not is_there(older, "guests-files")


def test_one_that_was_cut_off_twice_is_ended(site, monkeypatch):
    """The guest runs meanwhile, and writes to its disk, which is older than the second one. If this fails, an ordinary
    rebuild that was killed is not ended by a start.
    """
    site.provision("a", flavor=BARE)
    site.do("rebuilt", "a", fresh=True)
    write(site, "guests-files")
    for _time in range(2):
        cut_off(site, monkeypatch)
        write(site, "guests-files")
    assert not site.do("running", "a").get("failed")
    assert not is_there(site, "guests-files")
