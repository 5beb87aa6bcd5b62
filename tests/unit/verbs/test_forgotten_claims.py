# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims of a database that is older than what lies on the board, or whose board is gone for good, ended by an
operator's word. If these fail, a board, an outlet or a name is lost for ever: each verb refuses, and names
another that refuses.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import ANOTHER, cleaned, found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_another_boards_file import deploy
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, is_refused, stop

EVES = "its root is that of eve, not of jackie"


@pytest.fixture
def contradicted(jackie):
    """By the older database jackie has the board that eve runs on: her root is there, and no record of anybody."""
    (jackie.state / "board-roots" / "fs_0" / "made.json").write_text(ANOTHER)
    record(jackie).unlink()
    return jackie


def test_a_claim_against_anothers_root_has_a_way_out(contradicted):
    """Lost: the board, for ever: terminate, the modules and reconcile refuse it, and name reconcile."""
    site = contradicted
    there = site.what_is_there()
    assert EVES in site.terminate()[-1]["msg"]
    for words in ({}, {"adopt": ["jackie"]}, {"forget": ["bob"]}):
        ((text, done),) = found(reconcile(site, **words))
        assert (text.startswith(EVES), done) == (True, None)
        assert text.endswith("reconcile -e forget=jackie ends jackie's claim, and touches nothing of the board")
    assert site.what_is_there() == there
    dry = reconcile(site, forget=["jackie"], check=True)
    assert (found(dry)[0][1], dry["ended"]) == ("jackie's claim would be ended", ["jackie"])
    assert site.what_is_there() == there

    result = reconcile(site, forget=["jackie"])
    ((text, done), (left, kept)) = found(result)
    assert (text, done, result["ended"]) == (EVES, "jackie's claim was ended", ["jackie"])
    assert "has the root of eve, of which no claim is known: nothing of it is touched" in left
    assert kept is None
    there["claims"] = {}
    assert site.what_is_there() == there
    assert any("ended by an operator's word" in event.text for event in site.events(0, "release"))
    # Nobody gets it meanwhile, and jackie another one.
    assert [board["board"] for board in site.provision()[0]["boards"]] == [1]
    # In another order than it says, nothing is lost.
    assert "stop it first" in site.module("board_image", boards=[0], state="absent")["msg"]
    assert (site.state / "board-roots" / "fs_0" / "root.ext4").exists()
    # As it says, once eve agrees.
    assert "stop and clean the board (modules tilera_boot with state=stopped, board_image with state=absent)" in left
    assert not site.module("tilera_boot", boards=[0], state="stopped", timeout=10).get("failed")
    root = site.state / "board-roots" / "fs_0" / "root.ext4"
    assert f"{root}: is the root of another instance, not of eve" in cleaned(site)  # the file is that of jackie
    root.rename(site.folder / "aside")
    assert cleaned(site) is None
    reconcile(site)
    assert (site.outlets()["1"], site.record(0).state, site.record(0).claim) == ("off", "power off", None)
    assert not any(result.get("failed") for result in site.provision("carol"))
    assert site.board_of("carol") == 0


def test_no_word_ends_a_claim_that_nothing_contradicts(jackie):
    """Lost: an instance, without its board being switched off or wiped, by a slip of the name."""
    there = jackie.what_is_there()
    result = reconcile(jackie, forget=["jackie"])
    ((text, done),) = found(result)
    assert text == (
        "nothing on the board is another's, so forget does not end jackie's claim: ansible-playbook "
        "hetero.compute.terminate_instance -e instance=jackie ends it, and frees the board"
    )
    assert (done, result["ended"]) == (None, [])
    assert jackie.what_is_there() == there


def test_what_is_said_of_a_claim_that_is_left_over_does_not_contradict_itself(jackie):
    """Lost: who reads that nothing contradicts a claim, and on the next line that its instance ended long ago."""
    copy = backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.terminate())
    put_back(jackie, copy)
    result = reconcile(jackie, forget=["jackie"])
    (kept, _recorded, (left, _done)) = found(result)
    assert (result["ended"], kept[1]) == ([], None)
    assert "contradicts" not in kept[0]
    typed = "ansible-playbook hetero.compute.terminate_instance -e instance=jackie"
    assert f"{typed} ends it" in kept[0]
    assert f"{typed} gives the board back" in left
    assert not any(result.get("failed") for result in jackie.terminate())
    assert jackie.what_is_there() == jackie.clean()


def test_a_claim_against_who_used_the_disk_since_has_a_way_out(jackie):
    """Lost: the board with a disk, for ever; or eve's data on it."""
    jackie.wire(0, disk="/dev/sda")
    jackie.cut(0)
    (mark,) = (jackie.state / "wipes").glob("*.json")
    mark.write_text(json.dumps({"used by": "eve", "disks": ["/dev/sda"]}))
    record(jackie).unlink()
    assert "disk /dev/sda was used by eve since, not by jackie" in jackie.terminate()[-1]["msg"]
    result = reconcile(jackie, forget=["jackie"])
    assert found(result)[0][1] == "jackie's claim was ended"
    assert jackie.record(0).claim is None
    claimed = jackie.provision("carol")[0]
    assert [board["board"] for board in claimed["boards"]] == [1]


# ---- boards that left the boards file


@pytest.fixture
def left(jackie):
    """Carol ran on board 1, which the boards file does not name any more; jackie's board has its outlet since."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    deploy(jackie, {0})
    jackie.pdu(board0="off", board1="on")
    jackie.wire(0, outlet="2")
    return jackie


def test_an_outlet_of_a_board_that_is_gone_has_a_way_out(left):
    """Lost: an outlet of the PDU, for ever: the instance that had it is on a board that nobody can terminate."""
    result = stop(left)
    is_refused(result, "by which carol on board1 had power last", "board1 is not in the boards file")
    assert "reconcile -e forget=carol lets go of it" in result["msg"]
    before = left.outlets()
    (text,) = [text for text in reconcile(left)["others"] if text.startswith("claim of carol")]
    typed = "ansible-playbook hetero.compute.reconcile -e forget=carol"
    assert text.endswith(f"add it to the boards file; or, where it is gone for good, {typed} ends it")
    assert reconcile(left, forget=["carol"], check=True)["ended"] == ["carol"]
    assert record(left, 1).exists()

    result = reconcile(left, forget=["carol"])
    assert (result["ended"], result["changed"]) == (["carol"], True)
    assert not record(left, 1).exists()
    assert list(left.what_is_there()["claims"]) == ["jackie"]
    assert left.outlets() == before
    assert not stop(left).get("failed")
    assert not boot(left).get("failed")


def test_a_record_alone_of_a_board_that_is_gone_has_the_same_way_out(left):
    """Lost: the same, where the database was put back from before carol came."""
    with left.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    (text,) = [text for text in reconcile(left)["others"] if text.startswith("record of the claim of carol on board1")]
    assert text.endswith("reconcile -e forget=carol ends it")
    assert reconcile(left, forget=["carol"])["ended"] == ["carol"]
    assert not record(left, 1).exists()
    assert not stop(left).get("failed")


@pytest.mark.parametrize("how", ["eves", "unreadable"])
def test_what_another_left_there_stays(ten, how):
    """Lost: eve, who had the board after carol: her outlet to a slip in the wiring, her claim for ever."""
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    copy = backups.make(ten.params["state_db"])
    assert not any(result.get("failed") for result in ten.terminate("carol"))
    assert not any(result.get("failed") for result in ten.provision("eve"))
    put_back(ten, copy)
    before = (ten.folder / "tilera_boards").read_text()
    deploy(ten, {0, 3})
    if how == "unreadable":
        record(ten, 1).write_text("{")
    texts = [text for text in reconcile(ten)["others"] if "board1:" in text]
    assert [("carol" in text, "eve" in text) for text in texts] == [(True, False), (False, how == "eves")]
    assert reconcile(ten, forget=["carol"])["ended"] == ["carol"]
    assert record(ten, 1).exists()
    ten.wire(3, outlet="2")
    reconcile(ten)
    assert ten.outlets()["2"] == "on"
    if how == "eves":
        ten.wire(3, outlet="4")
        (ten.folder / "tilera_boards").write_text(before)
        reconcile(ten)
        assert ten.board_of("eve") == 1


def test_no_word_ends_the_claim_of_who_runs_there(ten):
    """Lost: an instance that runs, to a word given in good faith: the boards file is wrong, not the database."""
    for number in (0, 1):
        ten.wire(number, disk="/dev/sda")
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    path = ten.folder / "tilera_boards"
    rows = [row.split(" ", 3) for row in path.read_text().splitlines()]
    rows[0][2], rows[1][2] = rows[1][2], rows[0][2]
    path.write_text("\n".join(" ".join(row) for row in rows) + "\n")
    assert "correct the boards file" in found(reconcile(ten))[0][0]
    result = reconcile(ten, forget=["jackie"])
    assert result["ended"] == []
    assert "it runs jackie and shows its key, so its claim is not ended" in found(result)[0][0]
    assert record(ten).exists()
