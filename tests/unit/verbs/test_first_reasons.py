# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verb on a board says where one thing after another goes wrong. If these fail, who asked for an instance reads
what went wrong last, and not why it was not brought up; or gets another board than the one that was asked for.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board as board_module
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, fake, root

#: Seconds that a boot which is to stall may take.
SOON = 2
CABLE = boot_loop.CABLE.format(mac="00:1a:ca:00:57:00", outlet="pdu-a outlet 1")
NO_BOOT = f"board0: no boot request within {SOON} s, twice{CABLE}"
STAYS = (
    "; jackie on board0 stays claimed: ask for jackie again once that is mended, or ansible-playbook "
    "hetero.compute.terminate_instance -e instance=jackie ends it"
)


def verb(site, state="running", timeout=10, **given):
    return site.module("instance", kind="board", instance="jackie", state=state, timeout=timeout, **given)


def stalls(site, **given):
    """Jackie, asked for where nothing boots."""
    return verb(site, timeout=SOON, **REQUEST, **given)


def out_of_use(site, board):
    assert site.module("board_maintenance", boards=[board], state="on", reason="its fan is loud")["changed"]


@pytest.mark.parametrize(
    ("step", "how"), [("stop", "breaks"), ("remove", "breaks"), ("wipe", "breaks"), ("release", "fails")]
)
def test_both_are_told_where_what_does_not_boot_cannot_be_taken_back(site, monkeypatch, step, how):
    """Lost: why the instance was not brought up; the reason that is left says nothing of its image."""
    owner, name = {
        "stop": (board_module.release, "switch_off"),
        "remove": (board_module.release, "clean"),
        "wipe": (board_module.release, "wipe_beside"),
        "release": (board_module.board_releases, "absent"),
    }[step]
    real = getattr(owner, name)

    def bad(*args, **given):
        if how == "breaks":
            raise HeteroError("is full", "its disk", "make room")
        return dict(real(*args, **given), failed=True, msg="its disk: is full: make room")

    monkeypatch.setattr(owner, name, bad)
    fake(site, 0, stall="nfs")
    result = stalls(site)
    assert (result["failed"], result["changed"], result["blame"], result["step"]) == (True, True, "image", "boot")
    assert result["msg"].startswith("board0: image debian does not boot: stalled at nfs after ")
    assert result["msg"].removesuffix(STAYS).endswith("; and then: its disk: is full: make room")
    assert any(line["text"].startswith("the image does not boot") for line in result["lines"])


def test_both_are_told_where_no_other_board_is_free(site):
    """Lost: all that was done, and whose fault it was: only that there is no board was said."""
    out_of_use(site, 1)
    fake(site, 0, stall="tftp")
    result = stalls(site)
    assert (result["failed"], result["changed"], result["blame"], result["step"]) == (True, True, "board", "boot")
    assert result["msg"].startswith(f"{NO_BOOT}; and then: jackie wants tp64.8x8")
    assert "its fan is loud" in result["failure"]["rejected"]["board1"][0]
    assert any("kept out of use" in line["text"] for line in result["lines"])
    again = stalls(site)
    assert (again["failed"], again["changed"]) == (True, False)
    assert "no boot request within 2 s, twice" in again["msg"]


def test_both_are_told_where_the_root_of_a_board_at_fault_stays(site, monkeypatch):
    """Lost: that the board is at fault."""
    real = board_module.board_images.absent
    told = dict(failed=True, msg="board0: still there after it was removed: mount X: look who uses it")
    monkeypatch.setattr(board_module.board_images, "absent", lambda *args: dict(real(*args), **told))
    fake(site, 0, stall="tftp")
    result = stalls(site)
    assert result["msg"] == f"{NO_BOOT}; and then: {told['msg']}{STAYS}"
    assert site.board_of("jackie") == 0


def test_what_went_wrong_on_the_way_to_a_board_that_boots_is_no_failure(site):
    """Lost: the word that all is well."""
    fake(site, 0, stall="tftp")
    result = verb(site, **REQUEST)
    assert not result.get("failed"), result
    assert "msg" not in result


# ---- this board and no other


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_board_that_was_asked_for_and_no_other(site, attempts):
    """Lost: the board that was meant: jackie runs on another one, which nobody asked for."""
    fake(site, 0, stall="tftp")
    result = stalls(site, board=0, attempts=attempts)
    assert (result["failed"], result["blame"]) == (True, "board")
    assert result["msg"] == NO_BOOT + STAYS
    assert site.board_of("jackie") == 0
    assert site.record(0).state == "error"
    for check in (True, False):
        again = stalls(site, board=0, attempts=attempts, check=check)
        assert "board0: is out of use: no boot request within 2 s, twice" in again["msg"], check
        assert not again["changed"]
        assert site.board_of("jackie") == 0
    assert not verb(site, "absent").get("failed")
    fake(site, 0)
    assert verb(site, **REQUEST, board=0)["instances"][0]["name"] == "board0"
    assert (root(site) / "root").exists()


def test_another_board_where_none_was_asked_for_by_name_any_more(site):
    """Lost: an instance, to a board that stays at fault, after its owner has left out the option."""
    fake(site, 0, stall="tftp")
    assert stalls(site, board=0)["failed"]
    assert verb(site, **REQUEST)["instances"][0]["name"] == "board1"


# ---- one at fault beside an image that does not boot


def test_a_board_at_fault_stays_out_of_use_where_the_others_image_is_taken_back(site):
    """Lost: the evidence against a board: the next one to ask gets it."""
    fake(site, 0, stall="nfs")
    fake(site, 1, stall="tftp")
    result = site.module("instance", kind="board", instance="lab", count=2, timeout=SOON, **REQUEST)
    assert (result["failed"], result["blame"]) == (True, "image")
    assert "board1: no boot request within 2 s, twice" in result["msg"]
    assert (site.record(0).state, site.record(0).claim) == ("power off", None)
    kept = site.record(1)
    assert (kept.state, kept.note, kept.claim) == ("error", "no boot request within 2 s, twice", None)
    said = [line["text"] for line in result["lines"] if "kept out of use (" in line["text"]]
    assert [text.rpartition("): ")[2] for text in said] == ["no boot request within 2 s, twice"]
    assert not root(site, 1).exists()
    assert site.outlets() == {"1": "off", "2": "off"}


def test_what_was_ended_while_its_board_was_at_fault_is_not_claimed_anew(site, monkeypatch):
    """Lost: a board, to an instance that its owner has ended meanwhile."""
    real = board_module.board_images.absent

    def removed_and_ended(proxy, *args):
        result = real(proxy, *args)
        proxy.store.forget(proxy.store.claim_of("jackie"), "its owner ended it meanwhile")
        return result

    monkeypatch.setattr(board_module.board_images, "absent", removed_and_ended)
    fake(site, 0, stall="tftp")
    result = stalls(site)
    assert result["msg"] == f"{NO_BOOT}; and then: jackie: was given back meanwhile: ask for it anew"
    assert site.board_of("jackie") is None
    assert site.outlets() == {"1": "off", "2": "off"}
