# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps what lies here of a board that is gone, and what goes. Whole nodes are in verbs/test_gone_boards.py."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import discard as discard_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import gone_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture(autouse=True)
def answering(monkeypatch):
    """Addresses at which a machine answers, at the n-th look."""
    found, looks = {}, []

    def alive(ip, limit):
        looks.append(ip)
        return looks.count(ip) == found.get(ip)

    monkeypatch.setattr(gone_boards.ssh, "alive", alive)
    return found


@pytest.fixture
def gone(node):
    """board 2 was carol's and is in no boards file; her root and export are there, no claim or record of hers is."""
    with node.proxy() as proxy:
        (carol,) = claimed(proxy, "carol", [2])
        proxy.store.release(2, carol)
    node.name_boards([0, 1])
    folder = node.root(2, carol)
    path = str(folder / "root")
    export = dict(path=path, pseudo="/tftpboot/fs_2", clients=["10.0.2.3"])
    other = dict(path="/srv", pseudo="/srv", clients=["10.0.2.1"])
    (node.folder / "ganesha.json").write_text(json.dumps({"3": export, "9": other}))
    (node.state / "exports").mkdir()
    (node.state / "exports" / "fs_2.conf").write_text("")
    (node.state / "disks" / "fs_2").mkdir(parents=True)
    node.carol = carol
    return node


def discard(proxy, names=("board2",), ended=(), check=False):
    change = Change(check)
    found = discard_module.discard(proxy, list(names), list(ended), change, Deadline(5))
    return found, change.diff


def refused(proxy, **given):
    with pytest.raises(Refused) as error:
        discard(proxy, **given)
    assert error.value.thing == "board2"
    return str(error.value)


@pytest.mark.parametrize(
    "name", ["7", "board", "board01", "xboard7", "board7x", "board-1", "board 7", "board1234567890", "board7\n"]
)
def test_what_is_no_name_of_a_board(node, name):
    """Lost: what lies here of a board that nobody meant."""
    with node.proxy() as proxy, pytest.raises(BadInput, match="is no name of a board: give names such as board7"):
        discard_module.must_be_gone(proxy, ["board7", name])


def test_a_board_of_the_file_is_not_gone(node):
    """Lost: the root of a board that is in use."""
    with node.proxy() as proxy:
        discard_module.must_be_gone(proxy, ["board3", "board123456789"])
        for name in ("board0", "board2"):
            with pytest.raises(Refused, match=f"^{name}: is in the boards file: nothing is removed: "):
                discard_module.must_be_gone(proxy, [name])


@pytest.mark.parametrize("check", [True, False])
def test_all_that_lies_here_of_a_board_goes(gone, check, monkeypatch):
    """Lost: the room of what nobody wants; or all of it, to a dry run."""
    held = []
    remove = discard_module._remove
    monkeypatch.setattr(
        discard_module,
        "_remove",
        lambda *words: held.append(held_by(str(gone.run_folder), "board2")) or remove(*words),
    )
    there = [
        "export 3 /tftpboot/fs_2",
        f"folder {gone.state / 'board-roots' / 'fs_2'}, made for carol",
        f"folder {gone.state / 'disks' / 'fs_2'}",
        f"file {gone.state / 'exports' / 'fs_2.conf'}",
    ]
    with gone.proxy() as proxy:
        found, (diff,) = discard(proxy, ["board2", "board7"], check=check)
        said = [(one.board, one.phase, one.text) for one in proxy.store.events(boards=[2]) if "removed" in one.text]
        again = discard(proxy)
    assert found == {"board2": there}
    assert (diff["before_header"], diff["before"], diff["after"]) == (
        "board2, not in the boards file", {"there": there}, {"there": []},
    )  # fmt: skip
    assert [text and text.split(" (")[0] for text in held[:2]] == ([None, None] if check else ["reconcile", None])
    assert said == ([] if check else [(2, "reconcile", f"removed by an operator's word: {'; '.join(there)}")])
    if not check:
        assert again == ({}, [])
        assert list(json.loads((gone.folder / "ganesha.json").read_text())) == ["9"]
        assert not any((gone.state / place / "fs_2").exists() for place in ("board-roots", "disks"))
        assert not (gone.state / "exports" / "fs_2.conf").exists()


def test_what_stays_after_it_was_removed_is_said(gone, monkeypatch):
    """Lost: the word that something still uses it."""
    monkeypatch.setattr(discard_module._Parts, "remove", lambda self: None)
    with gone.proxy() as proxy:
        with pytest.raises(
            HeteroError, match=r"^board2: still there after it was removed: export 3 /tftpboot/fs_2; fold"
        ):
            discard(proxy)
        assert not any("removed by" in one.text for one in proxy.store.events())


# ---- somebody's


def write(node, claim, board):
    ClaimRecords(str(node.state / "claims")).write(board, Kept(claim, "running"))


def test_what_somebody_claims_stays(gone):
    """Lost: an instance's root, as its row fell out of the boards file."""
    with gone.proxy() as proxy:
        proxy.store.adopt(Kept(gone.carol, "running", "", True), "running", "", "why")
        said = refused(proxy)
        assert said.startswith("board2: is claimed for carol: nothing is removed: ")
        assert "hetero.compute.reconcile -e forget=carol ends its claim" in said
        assert refused(proxy, ended=["jackie"]) == said
        assert list(discard(proxy, ended=["carol"], check=True)[0]) == ["board2"]


def test_what_a_record_names_stays(gone):
    """Lost: the same, where the database is older than the claim."""
    with gone.proxy() as proxy:
        write(gone, gone.carol, 2)
        said = refused(proxy, ended=["jackie"])
        assert said.startswith(f"board2: has a record of a claim, {gone.record(2)}: nothing is removed: end the claim")
        assert list(discard(proxy, ended=["carol"], check=True)[0]) == ["board2"]
        gone.record(2).write_text("{")
        said = refused(proxy, ended=["carol"])
        assert f"{gone.record(2)}: what it says of a claim cannot be read; it may be of board2" in said
        write(gone, replace(gone.carol, board=7), 2)
        assert "has a record of a claim" in refused(proxy, ended=["carol"])


def test_a_record_in_anothers_place_that_may_be_its_keeps_it(gone):
    """Lost: the same, where its record was moved."""
    with gone.proxy() as proxy:
        write(gone, replace(gone.carol, board=0, created=1.0), 0)
        assert list(discard(proxy, check=True)[0]) == ["board2"]
        write(gone, replace(gone.carol, board=1, created=1.0), 0)
        assert list(discard(proxy, check=True)[0]) == ["board2"]
        write(gone, gone.carol, 0)
        assert f"{gone.record(0)}: that is a record of board2, not of board0; it may be of board2" in refused(proxy)
        gone.record(0).rename(gone.state / "claims" / "aside")
        assert "which nothing reads there: that claim has ended: remove it once nobody wants it" in refused(proxy)


# ---- in use


def export(gone, *clients):
    """Her root is exported to these, by an export each."""
    path = gone.folder / "ganesha.json"
    one = json.loads(path.read_text())["3"]
    path.write_text(json.dumps({str(id): dict(one, clients=[ip]) for id, ip in enumerate(clients, 3)}))


def test_what_is_exported_to_a_board_of_the_file_stays(gone):
    """Lost: the root of a board that has another number in a new boards file."""
    export(gone, "10.0.2.99", "10.0.2.2")
    with gone.proxy() as proxy:
        said = refused(proxy)
    assert said.startswith(
        "board2: its root is exported to 10.0.2.2, which is board1 in the boards file: nothing is rem"
    )


@pytest.mark.parametrize("look", [1, 2, 3])
def test_what_a_machine_answers_for_stays(gone, answering, look):
    """Lost: the root under a machine that runs from it, for one packet that was lost."""
    export(gone, "10.0.2.99", "10.0.2.77")
    answering["10.0.2.99"] = look
    with gone.proxy() as proxy:
        if look > 2:
            assert discard(proxy)[0]
        else:
            said = refused(proxy)
            assert said.startswith("board2: something answers at 10.0.2.99, to which its root is exported: nothing is")


@pytest.mark.parametrize(
    ("wiring", "power", "said"),
    [
        ({}, "off", None),
        ({}, "on", "its outlet 3 of pdu-a is on: nothing is removed: see what it feeds"),
        (dict(outlet="9"), "on", "whether its outlet 9 of pdu-a is off is not known (it has no such outlet): nothing"),
        (dict(outlet=3), "on", "its outlet 3 of pdu-a is on"),
        (dict(outlet="1"), "on", None),
        (None, "on", None),
    ],
)
def test_what_has_power_stays(gone, wiring, power, said):
    """Lost: the same, by an outlet that the wiring names still; or the way out where it is another board's by now."""
    if wiring is None:
        gone.config["boards"]["2"] = {"driver": "fake", "pdu": "pdu-a"}
    else:
        gone.config["boards"]["2"].update(wiring)
    gone.outlets(board2=power, board0="on")
    with gone.proxy() as proxy:
        if said:
            assert refused(proxy).startswith(f"board2: {said}")
        else:
            assert discard(proxy)[0]


def test_a_pdu_that_does_not_answer_says_nothing_of_power(gone):
    """Lost: the same, by an outlet of which nobody knows."""
    (gone.folder / "pdu-a.json").unlink()
    with gone.proxy() as proxy:
        said = refused(proxy)
    assert said.startswith("board2: whether its outlet 3 of pdu-a is off is not known (")
    assert "it has no such outlet" not in said
    assert "): nothing is removed: mend that, or take the board out of the wiring" in said
