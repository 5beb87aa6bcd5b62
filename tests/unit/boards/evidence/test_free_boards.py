# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a board is free. If these fail, a board that is somebody's goes to the next tenant, or a free one to nobody.

Tests roots/misplaced_roots.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import free_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused

BOARD = SimpleNamespace(id=3, name="board3")
DAMAGED = HeteroError("what it says of a claim cannot be read", "board3.json", "look")

OUT = SimpleNamespace(reason="its fan rattles", state="maintenance")


def kept(somebodys=True):
    return SimpleNamespace(is_somebodys=somebodys, claim=SimpleNamespace(instance="eve"))


@pytest.fixture
def node(monkeypatch):
    """A node on which so much is left of a board."""

    def make(root=None, archive=None, record=None, out=None, disks=(), left=(), unwiped=(), **recorded):
        monkeypatch.setattr(free_boards, "whose_root", lambda proxy, board: root)
        monkeypatch.setattr(free_boards, "whose_archive", lambda proxy, board: archive)
        monkeypatch.setattr(free_boards, "misplaced", lambda proxy, board: None)
        monkeypatch.setattr(free_boards, "used", lambda proxy, board: list(disks))
        monkeypatch.setattr(free_boards, "leftovers", lambda proxy, board: iter(left))
        monkeypatch.setattr(free_boards, "changed_address", lambda proxy, board: None)
        monkeypatch.setattr(free_boards, "served", lambda proxy, board: None)
        monkeypatch.setattr(free_boards, "unwiped", lambda proxy, board: list(unwiped))
        released = []

        def read(number):
            if isinstance(record, Exception):
                raise record
            return record

        store = SimpleNamespace(kept=read, out_of_use=lambda board: out, release=lambda *given: released.append(given))
        store.anothers_out_of_use = lambda board: None
        known = SimpleNamespace(**{"state": "power off", "power": "off", "claim": None, **recorded})
        store.record = lambda number: known
        anew = []
        monkeypatch.setattr(free_boards.console_logs, "ended", lambda *given: anew.append(given))
        return SimpleNamespace(store=store, released=released, config="its configuration", anew=anew), known

    return make


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ({}, None),
        (dict(root="jackie"), "has the root of jackie, of which no claim is known ("),
        (dict(archive="jackie"), "has the root of jackie, of which no claim is known ("),
        (dict(record=kept()), "is eve's by the record of its claim, and no claim is known ("),
        (dict(record=kept(somebodys=False)), None),
        (dict(record=DAMAGED), f"{DAMAGED} ("),
        (dict(out=OUT), "is in maintenance by its own record: its fan rattles ("),
        (dict(out=OUT, state="error"), "is in maintenance by its own record: its fan rattles ("),
        # its state, or its claim, says more by itself
        (dict(out=OUT, state="maintenance"), None),
        (dict(out=OUT, claim="jackie's"), None),
        (dict(root="jackie", record=kept(), claim="jackie's"), None),
    ],
)
def test_what_lies_here_says_that_a_board_is_somebodys(node, left, why):
    """Lost: the root of a claim that the database forgot; or a free board, for a claim that was cut off."""
    proxy, record = node(**left)
    said = free_boards.left_by(proxy, BOARD, record)
    assert free_boards.somebodys(proxy, BOARD, record) == said
    if why is None:
        assert said is None
    else:
        assert said.startswith(why)
        assert said.endswith("(ansible-playbook hetero.compute.reconcile)")


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (dict(power="on"), "its outlet was last seen on, and nobody has it"),
        (dict(disks=["disk /dev/sda was used by eve", "another"]), "disk /dev/sda was used by eve (ansible-playbook"),
        (dict(power=None), None),
        (dict(power="on", claim="jackie's"), None),
        (dict(power="on", state="error"), None),
        (dict(disks=["disk /dev/sda was used by eve"], state="maintenance"), None),
    ],
)
def test_an_outlet_that_is_on_says_so_too(node, known, why):
    """Lost: the board of who switched it on by hand, or a tenant's disk."""
    proxy, record = node(**known)
    said = free_boards.somebodys(proxy, BOARD, record)
    assert said == why if why is None else said.startswith(why)
    if why and "disk" in why:
        assert "-e node=board3" in said
        assert said.endswith("wipes it)")


@pytest.mark.parametrize(
    ("known", "texts"),
    [
        ({}, []),
        (dict(state="shutting down"), []),
        (dict(state="running"), ["it is in state 'running'"]),
        (dict(power=None), ["its outlet was not looked at since the claim"]),
        (dict(power="on"), ["its outlet was last seen on"]),
        (dict(left=["its root"], unwiped=["its disk"]), ["its root", "its disk"]),
        (
            dict(state="error", power="on", left=["its root"], unwiped=["its disk"]),
            ["it is in state 'error'", "its outlet was last seen on", "its root", "its disk"],
        ),
    ],
)
def test_a_board_is_given_back_only_when_nothing_is_left(node, known, texts):
    """Lost: the next tenant finds what the last one left; or all that is to be done, one at a time."""
    proxy, _record = node(**known)
    assert free_boards.in_the_way(proxy, BOARD) == texts
    if not texts:
        claim = SimpleNamespace(instance="jackie")
        free_boards.give_back(proxy, BOARD, claim, "board3", "look")
        assert proxy.released == [(3, claim, None)]
        # what it says from now on is not read as jackie's
        assert proxy.anew == [("its configuration", BOARD, "jackie")]
        return
    for thing, name in (("board3", ""), ("jackie", "board3 ")):
        with pytest.raises(Refused) as caught:
            free_boards.give_back(proxy, BOARD, "the claim", thing, "look")
        assert str(caught.value) == f"{thing}: {name}is not clean: {'; '.join(texts)}: look"
    assert proxy.released == proxy.anew == []
