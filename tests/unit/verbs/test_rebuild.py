# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user who asks for another image keeps the old one, or loses a root that was to stay."""

from __future__ import annotations

import json
import sqlite3

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.job_watch import SHOWN
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY


def rebuild(site, **given):
    return site.module("board_rebuild", instance="jackie", **given)


def test_only_what_differs_is_rebuilt(jackie):
    """Lost: a root, and the work in it, by a play that was run once more."""
    before = jackie.record(0)
    for given in ({}, dict(image="debian"), dict(ssh_public_key=KEY), dict(ssh_public_key=f"{KEY}-elsewhere")):
        result = rebuild(jackie, **given)
        assert (result["changed"], result["to_rebuild"]) == (False, []), given
        ((node, text),) = [(line["node"], line["text"]) for line in result["lines"]]
        assert node == "board0"
        assert text.startswith(f"nothing to rebuild: jackie has image debian {jackie.image.hash[:12]} and this key")
        assert "fresh=true" in text
    assert jackie.events(0, "rebuild") == []
    assert jackie.record(0) == before
    result = rebuild(jackie, fresh=True)
    assert (result["changed"], result["to_rebuild"]) == (True, [0])
    (event,) = jackie.events(0, "rebuild")
    assert "all that is in the root of jackie" in event.text, "what goes is said before it goes"
    assert event.text.endswith(" goes; its name, board0, address and lease stay")
    assert event.phase in SHOWN, "nobody who follows it would see it"
    assert jackie.record(0).claim.image_hash is None


@pytest.mark.parametrize(
    ("given", "field"), [(dict(image="debian-13"), "image"), (dict(ssh_public_key=OTHER_KEY), "ssh_public_key")]
)
def test_what_is_to_be_is_written_down_and_nothing_else_changes(jackie, given, field):
    before = jackie.what_is_there()
    old = jackie.record(0).claim
    dry = rebuild(jackie, check=True, **given)
    assert (dry["changed"], dry["to_rebuild"]) == (True, [0])
    assert jackie.record(0).claim == old
    assert rebuild(jackie, **given)["diff"] == dry["diff"]
    new = jackie.record(0).claim
    wanted = dict(given, image_hash=None, host_key=None)
    assert {name: getattr(new, name) for name in wanted} == wanted
    assert [getattr(new, name) for name in ("created", "expires", "flavor", "owner")] == [
        getattr(old, name) for name in ("created", "expires", "flavor", "owner")
    ]
    assert jackie.what_is_there() == before
    assert len(jackie.events(0, "rebuild")) == 1
    assert rebuild(jackie, **given)["to_rebuild"] == [0], "until its root was made, it is to be made"


def test_a_rebuild_that_was_cut_off_is_finished_by_a_provision_too(jackie):
    """Lost: an instance that lets the old key in for ever, because the play that follows takes the old root for new."""
    root = jackie.state / "board-roots" / "fs_0" / "root" / "root"
    (root / "data").write_text("old")
    rebuild(jackie, ssh_public_key=OTHER_KEY)
    boards = dict(boards=[0], instance="jackie")
    first = "stop it first (ansible-playbook hetero.compute.stop_instance -e instance=jackie), and run this again"
    assert first in jackie.module("board_image", **boards)["msg"]
    assert (root / "data").exists(), "its board still runs from it"
    assert not jackie.module("tilera_boot", state="stopped", keep=True, timeout=10, **boards).get("failed")
    assert jackie.module("board_image", **boards)["boards"][0]["restored"][0] == "root"
    assert not jackie.module("tilera_boot", timeout=10, **boards).get("failed")
    assert (root / ".ssh" / "authorized_keys").read_text().splitlines()[0] == OTHER_KEY
    assert not (root / "data").exists()


def test_what_cannot_be_is_refused_before_anything_changes(jackie):
    before = jackie.record(0)
    for given, word in (
        (dict(owner="eve", image="debian-13"), "belongs to jackie"),
        (dict(image="plan9"), "plan9"),
        (dict(ssh_public_key="-----BEGIN OPENSSH PRIVATE KEY-----"), "is a private key"),
    ):
        result = rebuild(jackie, **given)
        assert result["failed"]
        assert word in result["msg"]
    assert jackie.record(0) == before


def fill(site):
    """Promise all room of its roots."""
    path = site.folder / "proxy.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), roots_overcommit=1)))


def test_a_root_for_which_there_is_no_room_is_refused_before_the_old_one_goes(jackie):
    """Lost: a running instance, stopped for a root that cannot be made; or hours of looking for what was changed."""
    before = jackie.record(0)
    fill(jackie)
    result = rebuild(jackie, image="debian-13")
    assert result["failed"]
    assert "roots" in result["msg"]
    assert (result["changed"], result["diff"], result["to_rebuild"]) == (False, [], [])
    assert jackie.record(0) == before


def test_a_rebuild_that_cannot_be_written_down_has_changed_nothing(jackie):
    """Lost: the truth of a full disk: the answer says that another image is to be made, and no record does."""
    before = jackie.record(0)
    with sqlite3.connect(jackie.params["state_db"]) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
    db.close()
    result = rebuild(jackie, image="debian-13")
    assert (result["failed"], result["changed"], result["diff"]) == (True, False, [])
    assert jackie.record(0) == before


def test_a_root_on_its_boards_own_disk_needs_no_room_here(jackie):
    """Lost: the rebuild of an instance that takes nothing of the proxy, because the proxy is full."""
    with jackie.proxy() as proxy:
        proxy.store.put("jackie", boot_source="disk")
    fill(jackie)
    assert not rebuild(jackie, image="debian-13", check=True).get("failed")


def test_a_refusal_of_another_image_names_a_play_that_does_it(jackie):
    """The claim's error leads to the play, and the play's module takes what the claim refused."""
    request = dict(instance="jackie", owner="jackie", flavor=jackie.record(0).claim.flavor, ssh_public_key=KEY)
    refused = jackie.module("board_claim", image="debian-13", **request)
    assert "playbook hetero.compute.rebuild_instance" in refused["msg"]
    assert not any(result.get("failed") for result in jackie.rebuild())
    again = jackie.module("board_claim", **dict(request, image="debian-13", ssh_public_key=OTHER_KEY))
    assert again["changed"] is False
