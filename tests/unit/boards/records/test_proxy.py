# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node as its files describe it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import proxy as proxies
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

BOARD = SimpleNamespace(id=3, name="board3")


def of(wiring=None, **config):
    """A node on which board3 is wired so, without its files."""
    one = Proxy.__new__(Proxy)
    boards = {} if wiring is None else {"3": Wire(**wiring)}
    one.config = ProxyConfig(boards=boards, **{"state_folder": "/state", **config})
    one.boards = {3: BOARD, 10: "another", 2: "a third"}
    return one


@pytest.mark.parametrize(
    ("wiring", "disks", "partition"),
    [
        (None, [], None),
        ({"disk": None}, [], None),
        ({"disk": "/dev/sda"}, ["/dev/sda"], "/dev/sda1"),
        ({"disk": ["/dev/nvme0n1", "/dev/sdb"]}, ["/dev/nvme0n1", "/dev/sdb"], "/dev/nvme0n1p1"),
    ],
)
def test_the_disks_of_a_board(wiring, disks, partition):
    """Lost: a disk that a tenant wrote on is not wiped; or a board boots from a partition that is not there."""
    one = of(wiring)
    assert one.disks(BOARD) == disks
    if partition:
        assert one.root_partition(BOARD) == partition
    else:
        with pytest.raises(BadInput, match="no local disk is configured"):
            one.root_partition(BOARD)


def test_the_folder_and_the_address_of_a_node():
    assert of().folder("a", "b") == "/state/a/b"
    assert of(server="10.0.0.1").server == "10.0.0.1"
    with pytest.raises(BadInput, match="names no server"):
        of(server=None).server  # noqa: B018


@pytest.mark.parametrize("asked", [3, "3"])
def test_a_board_is_found_by_its_id(asked):
    assert of().board(asked) is BOARD


@pytest.mark.parametrize("asked", [4, "x", 100])
def test_a_board_that_there_is_not_is_told_with_those_that_there_are(asked):
    """Lost: what to type instead, to a tenant who mistyped it and edits no boards file. No other number is guessed."""
    with pytest.raises(BadInput) as caught:
        of().board(asked)
    assert str(caught.value) == (
        f"board {asked}: no such board (known: 2, 3, 10): give one of these, "
        "or have an operator add it to the boards file"
    )
    none = of()
    none.boards = {}
    with pytest.raises(BadInput, match=r"known: none\): have an operator add it"):
        none.board(0)


@pytest.mark.parametrize(
    ("wiring", "source"), [(None, "tftp"), ({"kernel_source": "flash"}, "flash"), ({"kernel_source": "x"}, None)]
)
def test_where_a_kernel_comes_from(wiring, source):
    """Lost: a board that has its kernel in its flash is said to ask for none."""
    if source:
        assert of(wiring).kernel_source(BOARD) == source
    else:
        with pytest.raises(BadInput, match=r"no such kernel_source: x \(known: tftp, flash\)"):
            of(wiring).kernel_source(BOARD)


@pytest.mark.parametrize("wiring", [None, {"pdu": "pdu-a"}, {"outlet": "5"}])
def test_a_board_without_an_outlet_is_told(wiring):
    with pytest.raises(BadInput, match="no PDU outlet is configured"):
        of(wiring).outlet(BOARD)
    assert of({"pdu": "pdu-a", "outlet": "5", "console": "x"}).outlet(BOARD) == ("pdu-a", "5")


@pytest.fixture
def opened(monkeypatch):
    """Open a node whose parts are played; gives what was done."""

    def make(boards=(BOARD,), fails=None, **given):
        did = []

        class Store:
            def __init__(self, *given, **named):
                did.append(("store", given, named))

            def claims(self):
                return ["a claim"]

            def close(self):
                did.append("closed")

        def must_name_boards(*given):
            did.append(("boards", given))
            if fails:
                raise fails

        def read_config(path):
            return ProxyConfig(state_folder="/state", others={"path": path})

        monkeypatch.setattr(proxies, "read_config", read_config)
        monkeypatch.setattr(proxies, "read_boards", lambda path: list(boards))
        monkeypatch.setattr(proxies, "must_not_be_lost", lambda *given: did.append(("lost", given)))
        monkeypatch.setattr(proxies, "must_name_boards", must_name_boards)
        monkeypatch.setattr(proxies, "Store", Store)
        params = dict(config="proxy.json", boards_file="boards", state_db="state.db")
        try:
            one = Proxy(params, **given)
        except HeteroError as error:
            return error, did
        return one, did

    return make


def test_a_node_is_opened_with_all_its_parts(opened):
    """Lost: a database that was lost is made anew without a word, and all of its claims are free."""
    one, did = opened()
    records = dict(write=None, records="/state/claims")
    actor = f"pid {os.getpid()}"
    assert did == [("lost", ("state.db", "/state")), ("store", ("state.db", actor, True), records)]
    assert (one.actor, one.boards, one.config.others["path"]) == (actor, {3: BOARD}, "proxy.json")
    with one:
        assert "closed" not in did
    assert did[-1] == "closed"
    one, did = opened(actor="jo", create=False, write=True, lost=True)
    assert did == [("store", ("state.db", "jo", False), dict(records, write=True))]


@pytest.mark.parametrize(
    ("boards", "boardless", "asked"), [((), False, True), ((), True, False), ((BOARD,), False, False)]
)
def test_an_empty_boards_file_is_a_mistake_where_instances_were_made(opened, boards, boardless, asked):
    """Lost: all instances of a node, for a file that was emptied; or the way to be rid of the last."""
    did = opened(boards, boardless=boardless)[1]
    claims = ("boards", ("boards", ["a claim"], "state.db", "/state"))
    assert (claims in did) is asked
    error, did = opened(boards, HeteroError("is empty", "boards", "look"), boardless=boardless)
    assert isinstance(error, HeteroError) is asked
    assert ("closed" in did) is asked
