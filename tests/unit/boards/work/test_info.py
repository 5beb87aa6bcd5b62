# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What board_info says of boards and claims, field by field. Status pages are tried in tests/unit/plugin_utils."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Event, Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.energy import Energy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import info
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

BOARD = SimpleNamespace(
    id=2, name="board2", ip="10.0.2.3", mac="00:1a", arch="TILEPro64", geometry="8x8", columns={"id": 2, "vcpus": 10}
)
EVE = Claim(2, "eve-1", "eve", "jo", {"name": "big"}, "demo", "key", 5.0, 100.0, "host key", "hash", "disk")


def test_all_that_is_said_of_a_claim():
    """Lost: what a play or a page looks up by its name."""
    record = Record(2, "running", claim=EVE)
    said = dict(
        instance="eve-1",
        request="eve",
        board=2,
        name="board2",
        ip="10.0.2.3",
        mac="00:1a",
        owner="jo",
        flavor="big",
        image="demo",
        created=5.0,
        expires=100.0,
        host_key="host key",
        image_hash="hash",
        boot_source="disk",
        state="running",
    )
    assert info.claim_fields(BOARD, record, EVE) == said
    assert info.claim_fields(None, Record(2, "running"), EVE, ran=False) == dict(said, ip=None, mac=None, ran=False)
    assert info.claim_fields(BOARD, record, EVE, ran=True) == dict(said, ran=True)


def test_all_that_is_said_of_a_board():
    """Lost: the same of a board that somebody has: its state, what feeds it, how long its lease lasts."""
    record = Record(2, "error", 90.0, "on", 95.0, "its fan", EVE)
    wiring = Wire(pdu="pdu-a", outlet="7", disk="/dev/sda")
    assert info.board_fields(BOARD, record, 97.5004, wiring) == dict(
        id=2,
        vcpus=10,
        name="board2",
        arch="TILEPro64",
        geometry="8x8",
        state="error",
        since=90.0,
        since_seconds=7.5,
        note="its fan",
        error="its fan",
        power="on",
        power_seen=95.0,
        pdu="pdu-a",
        outlet="7",
        disks=["/dev/sda"],
        instance="eve-1",
        request="eve",
        owner="jo",
        flavor="big",
        image="demo",
        created=5.0,
        expires=100.0,
        lease_seconds=2.5,
        host_key="host key",
    )


def test_what_is_not_known_of_a_board_is_none():
    """Lost: a board that nobody wired or touched yet; or a time below zero, after a clock was set back."""
    free = info.board_fields(BOARD, Record(2), 97.0, Wire())
    nothing = (
        "since", "since_seconds", "error", "power", "power_seen", "pdu", "outlet", "instance", "request", "owner",
        "flavor", "image", "created", "expires", "lease_seconds", "host_key",
    )  # fmt: skip
    assert {name for name, value in free.items() if value is None} == set(nothing)
    assert (free["disks"], free["state"], free["note"]) == ([], "power off", "")
    assert info.board_fields(BOARD, Record(2, since=99.0), 97.0, Wire())["since_seconds"] == 0.0
    assert info.board_fields(BOARD, Record(2, note="x"), 97.0, Wire(disk=["/dev/sda", "/dev/sdb"]))["disks"][1:] == [
        "/dev/sdb"
    ]
    assert info.board_fields(BOARD, Record(2, note="x"), 97.0, Wire())["error"] is None


NO_METER = dict(watts=None, energy_kwh=None)
BOARDS = {number: SimpleNamespace(id=number, name=f"board{number}") for number in (3, 0, 1)}
WIRING = {0: Wire(pdu="pdu-b", outlet="8"), 1: Wire(pdu="pdu-a", outlet="1"), 3: Wire()}
CLAIMS = [
    SimpleNamespace(board=0, instance="eve-1", request="eve", owner="jo"),
    SimpleNamespace(board=3, instance="bob", request="bob", owner="bob"),
]


@pytest.fixture
def node(monkeypatch):
    """A node with three boards and two claims, of which only the choice is looked at."""
    read = []

    def records(ids):
        read.append(ids)
        return {number: f"record {number}" for number in ids}

    def newest(board, count):
        return [Event(9, 1.0, "me", board, None, "boot", "text", 0.5)][:count]

    store = SimpleNamespace(claims=lambda: list(CLAIMS), records=records, newest_events=newest)
    store.ended = lambda name: [f"end of {name}"]
    store.energies = dict
    found = SimpleNamespace(store=store, boards=BOARDS, board=BOARDS.get, config=ProxyConfig(), read=read)
    found.wiring = lambda board: WIRING[board.id]
    monkeypatch.setattr(info.refusals, "last", lambda folder, names: dict.fromkeys(names, f"{folder}: no"))
    monkeypatch.setattr(info, "_feeds", lambda proxy: None)
    monkeypatch.setattr(info, "_withheld", lambda proxy, feeds, boards, records: {board.id: "why" for board in boards})
    monkeypatch.setattr(info, "_told", lambda *given: dict.fromkeys(given[-1], "told"))
    monkeypatch.setattr(info, "_health", lambda proxy, records, whole: {key: {"whole": whole} for key in records})
    monkeypatch.setattr(info, "board_fields", lambda board, record, now, wire: {"id": board.id, "wired": wire.outlet})
    monkeypatch.setattr(info, "claim_fields", lambda board, record, claim: (board, record, claim.instance))
    monkeypatch.setattr(info, "room_of", lambda proxy: SimpleNamespace(fields={"promised": 1}))
    monkeypatch.setattr(info, "images_of", lambda proxy: ["image"])
    drivers = SimpleNamespace(means=lambda board: f"means of {board.name}")
    monkeypatch.setattr(info, "BootDrivers", lambda proxy: drivers)
    shown = (["lab waits"], {"board1": "lab (queue 1)"})
    queue = SimpleNamespace(shown=lambda: shown, reserved=lambda: ["board0 for ann"], offers=lambda *asks: {})
    monkeypatch.setattr(info, "BoardQueue", lambda proxy: queue)
    monkeypatch.setattr(info, "unclaimed", lambda proxy, name: [SimpleNamespace(instance=name)])
    return found


@pytest.mark.parametrize(
    ("given", "boards", "claims"),
    [
        ({}, [0, 1, 3], ["eve-1", "bob"]),
        ({"ids": [3, 1]}, [3, 1], ["bob"]),
        ({"ids": []}, [], []),
        ({"instance": "eve"}, [0], ["eve-1"]),
        ({"instance": "eve-1"}, [0], ["eve-1"]),
        ({"instance": "nobody"}, [], []),
        ({"instance": "evee"}, [], []),
        ({"ids": [1, 3], "instance": "eve"}, [], []),
    ],
)
def test_which_boards_are_meant(node, given, boards, claims):
    """Lost: the board or the instance that was asked for; or those of all others, with it."""
    found = info.information(node, **given)
    assert [board["id"] for board in found["boards"]] == boards
    assert [claim for _board, _record, claim in found["claims"]] == claims
    assert all(board is BOARDS[int(record.split()[1])] for board, record, _claim in found["claims"])
    assert node.read == [{*boards, *(claim.board for claim in CLAIMS if claim.instance in claims)}]
    assert found["unclaimed"] == ([{"instance": given["instance"]}] if "instance" in given else [])
    assert found["ended"] == ([f"end of {given['instance']}"] if "instance" in given and not claims else [])
    assert found["alike"] == ([{"instance": "eve", "owner": "jo"}] if given.get("instance") == "evee" else [])


def test_the_rest_of_what_is_known(node):
    """Lost: what roots are promised, which images there are, what happened to a board."""
    found = info.information(node, ids=[1], events=1)
    event = dict(id=9, time=1.0, actor="me", board=1, instance=None, phase="boot", text="text", seconds=0.5)
    board = {"id": 1, "wired": "1", "events": [event], "boot": "means of board1", "withheld": "why"}
    assert found == dict(
        boards=[dict(board, health={"whole": True}, next=None, **NO_METER)],
        claims=[],
        roots={"promised": 1, "root_gb": 8},
        images=["image"],
        unclaimed=[],
        ended=[],
        alike=[],
        queue=[],
        offers={},
        reservations=[],
        pdu_errors={"pdu-a": f"{ProxyConfig().run_folder}: no"},
    )
    assert info.information(node, ids=[1])["boards"][0]["events"] == []


def test_the_whole_history_is_told_where_it_is_asked_for(node):
    """Lost: seconds of each request, for the histories of thousands of boards that never failed."""
    given = ({}, {"ids": [3]}, {"events": 1}, {"instance": "eve"})
    found = [info.information(node, **one)["boards"][0]["health"] for one in given]
    assert [one["whole"] for one in found] == [False, True, True, False]


def test_of_a_board_that_never_failed_the_score_is_told(tmp_path):
    with Store(str(tmp_path / "state.db"), "test") as store:
        store.outcome(0, "boot", True)
        store.outcome(1, "fault", False, "stalled at tftp")
        proxy = SimpleNamespace(store=store)
        few = info._health(proxy, store.records([0, 1, 3]), False)
        assert (few[0], few[3], few[1]["score"], few[1]["of"]) == ({"score": 100}, {"score": 100}, 0, 1)
        assert info._health(proxy, store.records([0]), True)[0]["passed"] == 1


def test_who_waits_is_known_where_all_boards_are_asked_for(node):
    """Lost: whom a free board is for."""
    found = info.information(node)
    following = [board["next"] for board in found["boards"]]
    assert (found["queue"], following) == (["lab waits"], [None, "lab (queue 1)", None])
    assert found["reservations"] == ["board0 for ann"]


def test_pdus_of_the_boards_that_are_meant(node):
    """Lost: why a board cannot be had; or a look, and a line, for each board of a PDU."""
    assert list(info.information(node)["pdu_errors"]) == ["pdu-a", "pdu-b"]
    assert info.information(node, ids=[3])["pdu_errors"] == {}


@pytest.mark.parametrize("events", [-1, 10001])
def test_no_other_number_of_events_than_is_named(node, events):
    with pytest.raises(BadInput, match=f"events: is {events}: give 0 to 10000"):
        info.information(node, events=events)
    assert info.information(node, events=10000)["boards"][0]["events"]


def test_why_a_board_is_noted(monkeypatch):
    """Lost: why nobody gets a board, why one is not switched, or that the record of its claim is gone."""
    asked = []
    feeds = SimpleNamespace(doubt=lambda board, claim: {0: "doubt", 1: None}.get(board.id))
    monkeypatch.setattr(info, "Feeds", lambda proxy: feeds)
    monkeypatch.setattr(info, "somebodys", lambda proxy, board, record: "somebody's" if board.id == 3 else None)
    monkeypatch.setattr(
        info, "told_of_record", lambda proxy, board, record, lost: asked.append(lost) or ("lost" if board.id else None)
    )
    store = SimpleNamespace(lost=lambda: [SimpleNamespace(board=1), SimpleNamespace(board=7)])
    store.anothers_out_of_use = lambda board: "another's" if board == 0 else None
    store.kept_boards = list
    node = SimpleNamespace(store=store)
    records = {0: Record(0, claim=EVE), 1: Record(1, claim=EVE), 3: Record(3)}

    def notes():
        feeds = info._feeds(node)
        withheld = info._withheld(node, feeds, BOARDS.values(), records)
        told = info._told(node, feeds, BOARDS.values(), records, withheld)
        return {number: record.note for number, record in told.items()}

    assert notes() == {0: "doubt; another's", 1: "lost", 3: "somebody's; lost"}
    assert asked == [{1, 7}] * 3
    records[0] = Record(0, note="its own", claim=EVE)
    assert notes()[0] == "its own; another's"
    records[0] = Record(0)
    assert notes()[0] == "another's"

    def refuse(*given):
        raise HeteroError("has no outlet")

    feeds.doubt = refuse
    assert notes()[1] == "lost"
    # who may not read the records of claims still sees the boards
    monkeypatch.setattr(info, "Feeds", refuse)
    assert notes() == {0: "", 1: "", 3: "somebody's"}


def test_a_free_board_that_the_node_gives_to_nobody_says_why(monkeypatch):
    """Lost: `flavors` counts a board as free that a tenant's board gets its power by, and requests for it fail."""
    feds = {0: SimpleNamespace(pdu="pdu-b", outlet="8"), 7: None}
    asked = []

    def feeds_another(board):
        asked.append(board.id)
        if board.id == 1:
            raise HeteroError("names no outlet")
        return "its wiring names eve's"

    feeds = SimpleNamespace(kept=lambda number: SimpleNamespace(fed=feds[number]), feeds_another=feeds_another)
    node = SimpleNamespace(store=SimpleNamespace(kept_boards=lambda: list(feds)), boards=BOARDS)
    node.wiring = lambda board: WIRING[board.id]
    monkeypatch.setattr(info, "somebodys", lambda proxy, board, record: "has a root" if record.power else None)
    records = {0: Record(0, claim=EVE), 1: Record(1), 3: Record(3)}

    def withheld():
        return info._withheld(node, feeds, BOARDS.values(), records)

    assert (withheld(), asked) == ({0: None, 1: None, 3: None}, []), "each outlet is where its record has it"
    feds[0].outlet = "9"
    fed = f"its wiring names eve's {info.RECONCILE}"
    assert (withheld(), asked) == ({0: None, 1: None, 3: fed}, [3, 1])
    records.update({1: Record(1, power="on"), 3: Record(3, "maintenance")})
    assert withheld() == {0: None, 1: "has a root", 3: None}
    feds[0], feds[7] = None, SimpleNamespace(pdu="pdu-a", outlet="1")
    records[3] = Record(3)
    assert withheld()[3] == fed, "a board that the boards file does not name any more has an outlet, too"
    assert info._withheld(node, None, BOARDS.values(), records)[3] is None


def test_readings_that_nobody_wrote_down_are_shown():
    """Lost: what boards draw just now, where who asks has no right to write."""
    energy = Energy("pdu-a outlet 1", 1.0, 310.0, 40.0, time.time())
    node = SimpleNamespace(store=SimpleNamespace(energies=lambda: {"eve-1": energy}))
    boards = [dict(NO_METER, id=number, instance=None, pdu="pdu-a", outlet=str(number)) for number in (1, 2, 3)]
    boards[0]["instance"] = "eve-1"
    info.add_readings(node, boards, {1: Drawn(41.0, 310.25), 2: Drawn(7.0, 9.0)})
    told = [{key: board[key] for key in NO_METER} for board in boards]
    assert told == [dict(watts=41.0, energy_kwh=1.25), dict(watts=7.0, energy_kwh=None), NO_METER]
