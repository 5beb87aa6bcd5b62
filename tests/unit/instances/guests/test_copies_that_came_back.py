# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose move was taken back while its new host was lost, and that host, which comes back with a whole copy of
its root of that time. If these fail, the old copy is started, and the root with all that its tenant wrote since goes.

Tests plugin_utils/move_steps.py, plugin_utils/request_steps.py.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.unit.instances.guests.played_guest import MARK
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_guests_that_move import another, two
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moves_of_restored_hosts import guests

__all__ = ["guests", "two"]

SINCE = b"and a month more"


@pytest.fixture
def spare(tmp_path, image):
    """Another machine, which is set up under the name of the new host, and has nothing of any guest."""
    return another(tmp_path / "spare", image, "kvm2", 40)


@pytest.fixture
def back(guests, spare):
    """win runs on kvm1 again, and has more there; kvm2 comes back, with its copy."""
    guests.copied()
    lost, guests.sites["kvm2"] = guests.sites["kvm2"], spare
    guests.migrate(back=True)
    assert (guests.states(), guests.running()) == ({"kvm1": "running"}, ["kvm1"])
    with open(guests.disk("kvm1"), "r+b") as file:
        file.seek(512 + len(MARK))
        file.write(SINCE)
    guests.sites["kvm2"] = lost
    assert guests.states() == {"kvm1": "running", "kvm2": "arriving"}
    return guests


def since(guests, name):
    with open(guests.disk(name), "rb") as file:
        file.seek(512 + len(MARK))
        return file.read(len(SINCE)) == SINCE


def test_an_older_copy_is_not_taken_for_the_root(back):
    with pytest.raises(Stop, match="win has a root on kvm1, and a whole one on kvm2 that is no copy of it"):
        back.migrate()
    assert (back.states(), back.running()) == ({"kvm1": "running", "kvm2": "arriving"}, ["kvm1"])
    assert since(back, "kvm1")


def test_the_first_printed_way_gives_up_the_copy_and_the_move_is_made_anew(back):
    back.migrate(back=True)
    assert (back.states(), back.running()) == ({"kvm1": "running"}, ["kvm1"])
    back.migrate()
    back.must_run("the copy was given up")
    assert (back.running(), since(back, "kvm2")) == (["kvm2"], True)


def test_the_other_printed_way_ends_what_it_has_come_back_to(back):
    """Lost: the copy, where the host that it has left was put back to an older state as a whole."""
    answers = [answer for answer in back.answers() if answer["item"] != "kvm2"]
    (part,) = request_steps.find(back.asked, answers, ["kvm2"])["parts"]
    back.verb(part["item"], lifecycle.absent, part["claims"][0])
    back.migrate()
    back.must_run("the older one was ended")
    assert (back.running(), since(back, "kvm2")) == (["kvm2"], False)


def test_nor_where_it_leaves_for_a_third_host(back, spare):
    """Lost: the same, where a run to another host was killed before the former one came back."""
    lost = back.sites.pop("kvm2")
    back.sites["kvm3"] = spare
    claim = back.claim()
    came = back.step("kvm1", "described", claim)["came"]
    back.copy(dict(leaves="kvm1", arrives="kvm3", left_by=claim["mover"], came_by=""), claim, came)
    back.step("kvm3", "given_up", claim)
    back.sites["kvm2"] = lost
    assert back.states() == {"kvm1": "leaving", "kvm2": "arriving"}
    with pytest.raises(Stop, match="nothing is started, copied or removed"):
        back.migrate()
    assert (since(back, "kvm1"), back.running()) == (True, [])
    back.migrate(back=True)
    assert (back.states(), back.running(), since(back, "kvm1")) == ({"kvm1": "running"}, ["kvm1"], True)


def test_nor_is_a_root_that_was_started_there_before_the_move_was_taken_back(guests, spare):
    """Lost: the same, where the lost host comes back by another name while a move to a third one is cut off."""
    claim = guests.started()
    lost, guests.sites["kvm2"] = guests.sites["kvm2"], spare
    guests.migrate(back=True)
    came = guests.step("kvm1", "described", claim)["came"]
    guests.copy(dict(leaves="kvm1", arrives="kvm2", left_by=guests.claim()["mover"], came_by=""), claim, came)
    guests.step("kvm2", "given_up", claim)
    guests.sites["kvm4"] = lost
    assert guests.states() == {"kvm1": "leaving", "kvm4": "running"}
    with pytest.raises(Stop, match="win has a root on kvm1, and a whole one on kvm4 that is no copy of it"):
        guests.migrate()
    assert os.path.exists(guests.disk("kvm1"))
    guests.migrate(back=True)
    assert (guests.states(), guests.running()) == ({"kvm1": "running"}, ["kvm1"])


def test_a_host_that_has_another_name_since_a_root_was_started_there_is_known(guests):
    """Lost: a move that could go on, to a refusal."""
    guests.started()
    guests.sites["kvm4"] = guests.sites.pop("kvm2")
    guests.migrate()
    guests.must_run("its new host has another name")
