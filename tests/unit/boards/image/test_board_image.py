# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verb image for many boards. If these failed, one broken board would keep the others from their images, two verbs
would work on one board at once, or a running board would lose its root.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image.board_images import (
    ImageRequest,
    Source,
    absent,
    present,
    take_in,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Tenant
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import leftovers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar


def test_boards_are_done_each_for_itself(site, proxy):
    """Board 1 is claimed by nobody; 0 and 2 are done all the same."""
    for name, board in (("jackie", 0), ("bob", 2)):
        site.claim(proxy, name, board)
    result = present(proxy, [0, 1, 2], ImageRequest(), Change(), Deadline(60))
    assert result["failed"]
    assert result["msg"] == "board1: is claimed by nobody: claim it: board_claim"
    assert [(board["name"], board["instance"], board["failed"]) for board in result["boards"]] == [
        ("board0", "jackie", False),
        ("board1", None, True),
        ("board2", "bob", False),
    ]
    assert [(line["instance"], line["node"], line["phase"]) for line in result["lines"]] == [
        ("jackie", "board0", "image"),
        ("bob", "board2", "image"),
    ]
    events = [event for event in proxy.store.events() if event.phase == "image"]
    assert sorted((event.board, event.text) for event in events) == [
        (0, "root ready, exported to 10.0.2.1 only"),
        (2, "root ready, exported to 10.0.2.3 only"),
    ]
    again = present(proxy, [0, 2], ImageRequest(), Change(), Deadline(60))
    assert (again["changed"], again["lines"]) == (False, [])
    assert len([event for event in proxy.store.events() if event.phase == "image"]) == 2


def test_who_asks_for_an_instance_that_another_request_gave_back_reads_so(site, proxy):
    """Lost: what to do, to a user of two plays for one instance, of which the first one's boot failed: "claim it:
    board_claim" is no playbook.
    """
    result = present(proxy, [1], ImageRequest(), Change(), Deadline(60), Tenant("jackie"))
    assert result["msg"] == (
        "board1: was given back meanwhile: another request was for jackie as well, and ended so, or it was terminated: "
        "ask for jackie again"
    )


def test_a_running_boards_root_is_not_removed(site, proxy):
    site.claim(proxy)
    present(proxy, [0], ImageRequest(), Change(), Deadline(60))
    proxy.store.move(0, board_states.BOOTING)
    proxy.store.move(0, board_states.RUNNING)
    result = absent(proxy, [0], Change(), Deadline(60))
    assert result["msg"] == "board0: is running from it: stop it first: tilera_boot with state stopped"
    assert (site.state / "board-roots" / "fs_0" / "root" / "etc" / "hostname").exists()
    proxy.store.move(0, board_states.SHUTTING_DOWN)
    result = absent(proxy, [0], Change(), Deadline(60))
    assert result["changed"]
    assert leftovers(proxy, proxy.board(0)) == []


@pytest.mark.parametrize("check", [True, False])
def test_a_root_that_is_not_there_is_not_made_anew_once_its_instance_ran(site, proxy, check):
    """Lost: a stopped tenant's work, to an empty root of its name, where what holds the roots is not mounted."""
    site.claim(proxy)
    present(proxy, [0], ImageRequest(), Change(), Deadline(60))
    for state in (board_states.BOOTING, board_states.RUNNING, board_states.SHUTTING_DOWN):
        proxy.store.move(0, state)
    site.clean()
    roots, claim = site.state / "board-roots", proxy.store.record(0).claim
    roots.rename(site.state / "elsewhere")
    result = present(proxy, [0], ImageRequest(), Change(check), Deadline(60))
    assert result.get("failed"), result
    assert f"jackie ran from {roots / 'fs_0'}, which is not there: nothing is made: mount the file" in result["msg"]
    assert (result["changed"], proxy.store.record(0).claim) == (False, claim)


def test_a_board_another_verb_has_is_waited_for_and_its_holder_named(site, proxy):
    site.claim(proxy)
    with lock(proxy.config.run_folder, "board0", "boot", "somebody", Deadline(1)):
        result = present(proxy, [0], ImageRequest(), Change(), Deadline(0.3))
    assert "still held by boot (somebody" in result["msg"]
    assert site.exports() == {}


def test_an_image_is_imported_by_path_and_named(site, proxy):
    source = image_tar(site.folder / "tile-linux.tar.xz", "w:xz")
    change = Change()
    image, lines = take_in(proxy, Source(source), change, Deadline(60))
    assert (image.name, change.changed) == ("tile-linux", True)
    assert lines[0]["text"] == f"tile-linux (tilepro64) is in the store: sha256:{image.hash}"
    again = Change()
    assert take_in(proxy, Source(source), again, Deadline(60)) == (image, [])
    assert not again.changed
    assert take_in(proxy, Source("tile-linux"), again, Deadline(60)) == (image, [])
    with pytest.raises(BadInput, match="is a name in the store, which is not imported"):
        take_in(proxy, Source("tile-linux", checksum="sha256:" + "0" * 64), again, Deadline(60))


def test_another_image_than_the_claims_is_refused(site, proxy):
    site.claim(proxy)
    other = image_store(proxy).import_image(image_tar(site.folder / "other.tar", kernel="OTHER"), "other")
    result = present(proxy, [0], ImageRequest(other), Change(), Deadline(60))
    assert result["msg"].startswith("board0: jackie was claimed with image debian, not other: rebuild")
    assert not (site.state / "board-roots" / "fs_0").exists()
