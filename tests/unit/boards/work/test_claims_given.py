# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of boards that are claimed and given back, value by value (boards/work/board_claims.py, board_fit.py and
board_releases.py). The module itself is in records/test_board_claim.py.

Tests boards/work/board_claims.py, boards/work/board_releases.py.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import (
    board_claims,
    board_fit,
    board_releases,
    each_board,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import record_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY


@pytest.fixture
def proxy(node):
    node.image()
    with node.proxy() as opened:
        yield opened


def asked_for(request="jackie", **more):
    return board_fit.ClaimRequest(
        **dict(dict(request=request, owner="ann", flavor=FLAVOR, image="debian", ssh_public_key=KEY), **more)
    )


def present(proxy, request="jackie", check=False, **more):
    change = Change(check)
    return board_claims.present(proxy, asked_for(request, **more), change), change


def absent(proxy, request="jackie", owner=None, check=False, numbers=(), created=(), **more):
    change = Change(check)
    asked = Instances(request, owner, numbers, created)
    return board_releases.absent(proxy, asked, change, Deadline(60), **more), change


def make_free(proxy, number, check=False):
    change = Change(check)
    return board_releases.make_free(proxy, proxy.board(number), change, Deadline(60)), change


def texts(result):
    return [(line["instance"], line["node"], line["phase"], line["text"]) for line in result["lines"]]


def test_what_a_wish_is_without_more_words():
    """Lost: one instance with its root on the node, to whoever asks for nothing else."""
    one = asked_for()
    assert (one.board, one.count, one.partial, one.lease_hours, one.move, one.boot_source, one.numbers) == (
        None, 1, False, None, False, "nfs", (),
    )  # fmt: skip
    assert (one.instances, one.many) == (["jackie"], "")
    three = asked_for(count=3, numbers=(1, 3))
    assert (three.instances, three.many) == (["jackie-1", "jackie-3"], "2 ")
    one.check()
    three.check()


@pytest.mark.parametrize("given", [dict(count=10000), dict(tolerance=0), dict(tolerance=0.999), dict(board=1)])
def test_what_may_just_be_asked_for(given):
    """Lost: what somebody needs, at the limit of what is to be had."""
    asked_for(**given).check()


@pytest.mark.parametrize(
    ("given", "thing"),
    [
        (dict(count=0), "count"),
        (dict(count=10001), "count"),
        (dict(count=2, board=0), "count"),
        (dict(tolerance=1), "memory_tolerance"),
        (dict(tolerance=-0.01), "memory_tolerance"),
        (dict(owner=" "), "owner"),
        (dict(owner="ann\x1b[31m"), "owner"),
        (dict(owner="ann\nboard9  running"), "owner"),
        (dict(image=" "), "image"),
        (dict(numbers=(1,)), "numbers"),
        (dict(flavor={}), "flavor"),
        (dict(lease_hours=-1), "lease_hours"),
        (dict(owner="x" * 256), "owner"),
        (dict(flavor=dict(FLAVOR, extra_specs={"memory": "x" * record_files.MOST_OF_FLAVOR})), "flavor"),
    ],
)
def test_what_no_node_could_serve(given, thing):
    """Lost: which of the words it was."""
    with pytest.raises(BadInput) as error:
        asked_for(**given).check()
    assert error.value.thing == thing


def test_a_claim_is_shown_with_its_fields(proxy):
    """Lost: what a claim changed, to whoever looks at the diff of a play."""
    result, change = present(proxy, lease_hours=1)
    (mine,) = proxy.store.claims()
    (diff,) = change.diff
    assert (diff["before_header"], diff["before"]) == ("jackie", {})
    assert diff["after"] == dict(
        board="board0",
        request="jackie",
        owner="ann",
        flavor="tp64.8x8",
        image="debian",
        boot_source="nfs",
        ssh_public_key=KEY,
        expires=board_claims.shown(mine)["expires"],
    )
    assert board_claims.shown(replace(mine, expires=86400.0))["expires"] == "1970-01-02T00:00:00Z"
    assert board_claims.shown(replace(mine, expires=None))["expires"] is None
    assert [(one["instance"], one["board"], one["ran"]) for one in result["boards"]] == [("jackie", 0, False)]
    assert result["lines"] == [
        dict(
            instance="jackie", node="", phase="", seconds=None, text="wants tp64.8x8: 3 of 3 boards fit, board0 chosen"
        )
    ]
    assert (result["rejected"], result["rejected_lines"]) == ({}, [])
    again, change = present(proxy)
    assert (texts(again)[0][3], change.changed) == ("wants tp64.8x8: has board0", False)


def test_a_dry_run_claims_nothing(proxy):
    """Lost: a board, to a dry run."""
    result, change = present(proxy, check=True)
    assert ([one["board"] for one in result["boards"]], change.changed, proxy.store.claims()) == ([0], True, [])


def test_boards_that_failed_least_are_given_first(proxy):
    """Lost: a quarter of an hour, to each request that gets the one board that does not boot."""
    proxy.store.outcome(0, "fault", False, "stalled at tftp")
    proxy.store.outcome(1, "boot", True)
    result, _change = present(proxy, "lab", count=2)
    assert [one["board"] for one in result["boards"]] == [1, 2], "equal ones in the order of their ids"
    last, _change = present(proxy, "eve")
    assert [one["board"] for one in last["boards"]] == [0], "where no other is free, it is given all the same"


def test_some_of_those_that_were_asked_for(proxy):
    """Lost: how many are missing."""
    claimed(proxy, "eve", [1])
    result, _change = present(proxy, "lab", count=3, partial=True)
    assert texts(result)[0][3] == "wants 3 tp64.8x8: 3 of 3 boards fit, 2 free, board0, board2 chosen (2 of 3)"
    assert list(result["rejected"]) == ["board1"]
    assert result["rejected"]["board1"][0].startswith("claimed for eve since ")
    again, _change = present(proxy, "lab", count=3, partial=True)
    assert texts(again)[0][3] == "wants 3 tp64.8x8: has board0, board2"
    with pytest.raises(NoneFree) as error:
        present(proxy, "lab", count=3)
    assert "lab wants 3 tp64.8x8" in str(error.value)
    assert "no node besides the 2 that it has." in str(error.value)
    assert error.value.facts["unfit"] == {}


def test_why_no_board_fits(proxy):
    """Lost: what to change of a asked_for."""
    with pytest.raises(NoneFree) as error:
        present(proxy, boot_source="disk")
    assert error.value.facts["rejected"] == {
        f"board{n}": ["no disk to boot from is configured for it"] for n in range(3)
    }
    assert error.value.facts["unfit"] == error.value.facts["rejected"]
    with pytest.raises(NoneFree) as error:
        present(proxy, image="fedora")
    assert error.value.facts["rejected_lines"] == [
        "board0, board1, board2: no image fedora in its store (known: debian)"
    ]
    with pytest.raises(NoneFree, match=r"3 of 4 boards\.\n  there are 3 such boards in all") as error:
        present(proxy, count=4)
    assert error.value.facts["rejected"], "by that a play looks further, and says what helps"
    proxy.boards.clear()
    with pytest.raises(NoneFree, match="  the boards file names no boards"):
        present(proxy)


def test_a_disk_needs_no_room_on_the_node(proxy, node):
    """Lost: a board with a disk of its own, refused for the node's file system."""
    board = proxy.boards[0]
    assert board_fit.root_sizes(proxy, asked_for(boot_source="disk"), [board]) == {"board0": 0}
    assert board_fit.root_sizes(proxy, asked_for(), [board])["board0"] > 0
    never = SimpleNamespace(never=lambda size: size > 0, why=lambda size: "no room")
    found = [
        board_fit.unfit_boards(proxy, asked_for(image=image), [board], never, {"board0": size})
        for image, size in (("debian", 1), ("debian", 0), ("x", 1))
    ]
    assert found[:2] == [{"board0": ["no room"]}, {"board0": []}]
    assert len(found[2]["board0"]) == 1


def test_a_board_in_error_is_moved_from_where_asked(proxy):
    """Lost: an instance, on a board that does not boot; or another's board."""
    claimed(proxy, made=False)
    proxy.store.move(0, "error", "it smells")
    stays, _change = present(proxy)
    assert [one["board"] for one in stays["boards"]] == [0]
    moved, change = present(proxy, move=True)
    assert [one["board"] for one in moved["boards"]] == [1]
    assert texts(moved)[1] == ("jackie", "board0", "claim", "error: it smells; jackie moves to board1")
    assert (change.diff[0]["before"]["board"], change.diff[0]["after"]["board"]) == ("board0", "board1")
    assert moved["rejected"] == {"board0": ["error: it smells"]}
    with pytest.raises(Refused, match="jackie: has board1, not board2: leave out option board"):
        present(proxy, board=2)
    assert [one["board"] for one in present(proxy, board=1)[0]["boards"]] == [1]


def test_nobody_gets_what_is_somebodys_without_a_claim(proxy, node):
    """Lost: a tenant's board, of whom the database does not know."""
    mine = SimpleNamespace(instance="eve", created=1.0, image_hash="x")
    node.root(0, mine)
    proxy.store.power_seen(1, "on")
    result, _change = present(proxy)
    assert [one["board"] for one in result["boards"]] == [2]
    assert result["rejected"]["board0"][0].startswith("has the root of eve, of which no claim is known")
    assert result["rejected"]["board1"][0].startswith("its outlet was last seen on, and nobody has it")


def test_whose_outlet_feeds_anothers_board_is_given_to_nobody():
    """Lost: a tenant's power; or a search of all boards' records, for one board that was asked for."""
    asked = []

    def feeds_another(board):
        asked.append(board.name)
        if board.name == "board1":
            raise HeteroError("no PDU outlet is configured for it")
        return "its outlet feeds eve's" if board.name == "board0" else None

    boards = [SimpleNamespace(name=f"board{number}") for number in range(5)]
    found = board_claims._fed(SimpleNamespace(feeds_another=feeds_another), boards, 2)
    assert found == {"board0": f"its outlet feeds eve's {board_claims.RECONCILE}"}
    assert asked == ["board0", "board1", "board2"]


def test_the_board_of_a_fed_outlet_is_refused(proxy, node):
    """Lost: the same, where a record says which outlet feeds its board."""
    (eve,) = claimed(proxy, "eve", [2])
    proxy.store.feed(2, Fed("pdu-a", "1"))
    result, _change = present(proxy)
    assert [one["board"] for one in result["boards"]] == [1]
    assert result["rejected"]["board0"][0].endswith(board_claims.RECONCILE)
    assert eve.board == 2


@pytest.mark.parametrize("named", [True, False])
def test_who_moved_since_a_copy_gets_no_second_board(proxy, node, named):
    """Lost: the root of an instance that moved, and that an older database has on another board."""
    (mine,) = claimed(proxy, made=False)
    moved = replace(mine, board=2, image_hash="ab" * 32)
    ClaimRecords(str(node.state / "claims")).write(2, Kept(moved, "running"))
    node.root(2, moved)
    if not named:
        del proxy.boards[2]
    with pytest.raises(Refused) as error:
        present(proxy)
    what = "jackie: board2 is jackie's by the record of its claim, though the database has it on board0: "
    way = "run ansible-playbook hetero.compute.reconcile, which adopts what proves itself"
    assert str(error.value) == what + ("" if named else "add board2 to the boards file, then ") + way
    node.record(2).write_text("{")
    assert present(proxy)[0]["boards"][0]["board"] == 0


def test_who_has_a_root_and_no_claim_gets_no_second_board(proxy, node):
    """Lost: an instance that runs, of which the database knows nothing, by asking for it again."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    proxy.store._db._db.execute("DELETE FROM claims")
    node.record(0).unlink()
    for check in (True, False):
        with pytest.raises(Refused, match="jackie: no claim"):
            present(proxy, check=check)
    assert proxy.store.claims() == []
    assert present(proxy, "eve")[0]["boards"][0]["board"] != 0


# ---- back


@pytest.fixture
def two(proxy):
    """lab-1 on board 0, lab-2 on board 1, both off and clean."""
    claimed(proxy, "lab", (0, 1), made=False)
    for board in range(3):
        proxy.store.power_seen(board, "off")
    return proxy


@pytest.mark.parametrize("check", [True, False])
def test_what_is_given_back_is_told(two, check):
    """Lost: that a board is free again; or a claim, to a dry run."""
    result, change = absent(two, "lab", check=check)
    text = "would be given back once clean (nothing is left)" if check else "off and clean, given back"
    assert texts(result) == [(f"lab-{n + 1}", f"board{n}", "release", text) for n in (0, 1)]
    assert [line["seconds"] is None for line in result["lines"]] == [check, check]
    assert check or all(0 <= line["seconds"] < 60 for line in result["lines"])
    assert [(one["instance"], one["name"]) for one in result["boards"]] == [("lab-1", "board0"), ("lab-2", "board1")]
    assert [(one["before_header"], one["after"]) for one in change.diff] == [("lab-1", {}), ("lab-2", {})]
    assert change.diff[0]["before"]["board"] == "board0"
    assert ("failed" in result, result["errors"], len(two.store.claims())) == (False, {}, 2 if check else 0)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (dict(numbers=(2,)), ["lab-1"]),
        (dict(board=0), ["lab-2"]),
        (dict(left=(0,)), ["lab-1"]),
        (dict(owner="ann"), []),
    ],
)
def test_only_what_was_meant_is_given_back(two, given, left):
    """Lost: an instance of a request of which others were meant."""
    assert not absent(two, "lab", **given)[0].get("failed")
    assert [claim.instance for claim in two.store.claims()] == left


def test_what_cannot_be_given_back_is_said_beside_what_can(two):
    """Lost: the boards of all others of a request, for one that is on; or why that one stays."""
    two.store.power_seen(0, "on")
    result, _change = absent(two, "lab")
    text = result["errors"]["lab-1"]
    assert text.startswith("lab-1: board0 is not clean: its outlet was last seen on: stop the board and remove its")
    assert "hetero.compute.terminate_instance -e instance=lab-1 does both" in text
    assert (result["failed"], result["msg"], list(result["errors"])) == (True, text, ["lab-1"])
    assert texts(result) == [
        ("lab-1", "board0", "release", text),
        ("lab-2", "board1", "release", board_releases.GIVEN_BACK),
    ]
    dry = absent(two, "lab", check=True)[0]["lines"][0]["text"]
    assert dry == "would be given back once clean (its outlet was last seen on)"
    for given, why in (
        (dict(owner="bob"), "lab-1: belongs to ann"),
        (dict(created=(1.0,)), "lab-1: was given back meanwhile, and claimed anew"),
    ):
        assert absent(two, "lab", **given)[0]["msg"].startswith(why)


def test_a_claim_that_was_changed_meanwhile_stays(two, monkeypatch):
    """Lost: the claim of who changed it since it was looked at."""
    real = two.store.claims
    monkeypatch.setattr(two.store, "claims", lambda *words: [replace(one, expires=1.0) for one in real(*words)])
    assert absent(two, "lab")[0]["errors"]["lab-2"] == "lab-2: was changed by somebody else just now: run this again"


def test_a_board_that_somebody_works_on_is_waited_for(two, node, monkeypatch):
    """Lost: a claim, ended under a verb that is at work; or whose work its end waits for."""
    monkeypatch.setattr(each_board, "QUIET", 0.01)
    with lock(str(node.run_folder), "board0", "start", "jo", Deadline(5)):
        change = Change()
        result = board_releases.absent(two, Instances("lab"), change, Deadline(3), 0)
    assert "still held by start (jo" in result["msg"]
    (wait,) = [said["text"] for said in result["lines"] if said["phase"] == "wait"]
    assert wait.startswith("held by start (jo")
    assert wait.endswith("; waited for until 3 s are over")


def test_a_board_that_nobody_gets_yet_is_not_called_free(two, node):
    """Lost: why the next one does not get it."""
    mine = two.store.claim_of("lab-1")
    kept = Kept(replace(mine, instance="eve", request="eve", created=mine.created - 1, image_hash="x"), "running")
    ClaimRecords(str(node.state / "claims")).write(0, kept)
    (line, _other) = absent(two, "lab")[0]["lines"]
    start = "off and clean, and its claim is ended; nobody gets the board yet: is eve's by the record of its claim"
    assert line["text"].startswith(start)


@pytest.mark.parametrize("check", [True, False])
def test_a_board_that_was_in_error_is_made_free(proxy, check):
    """Lost: a board, for ever; or one that a dry run made free."""
    proxy.store.move(1, "error", "x")
    proxy.store.move(1, "shutting down")
    proxy.store.power_seen(1, "off")
    result, change = make_free(proxy, 1, check)
    assert result == board_releases.nothing_yet()
    (diff,) = change.diff
    assert (diff["before_header"], diff["before"], diff["after"]) == (
        "board1", {"state": "shutting down"}, {"state": "power off"},
    )  # fmt: skip
    assert proxy.store.record(1).state == ("shutting down" if check else "power off")


def test_a_board_that_somebody_has_is_not_made_free(proxy, node):
    """Lost: a tenant's board, repaired under its instance."""
    claimed(proxy)
    with pytest.raises(
        Refused, match=r"board0: is claimed for jackie: .*stop_instance -e instance=jackie.* -e node=board0"
    ):
        make_free(proxy, 0)
    node.root(1, SimpleNamespace(instance="eve", created=1.0, image_hash="x"))
    with pytest.raises(
        Refused, match=r"board1: has the root of eve, of which no claim is known .*adopt it.*board_image"
    ):
        make_free(proxy, 1)
    proxy.store.move(2, "error", "x")
    with pytest.raises(Refused, match=r"board2: is not clean: it is in state 'error'.*repair -e node=board2 does both"):
        make_free(proxy, 2)
