# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power of a board that was on is cycled, and it is proven that it was this board's. If these fail, another
tenant's board is cut for good, or a boot ends although nothing contradicts it.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import proven_cuts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.proven_cuts import ProvenCuts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence


class Loop(ProvenCuts):
    """Notes what it would do; what it would do in a thread is done at once."""

    _all_works = _asking = _on_down = _on_refused = _on_status = _on_switched = None

    def __init__(self, near=False, watched=False, cut=()):
        self.did = []
        store = SimpleNamespace(event=lambda *words: self.did.append(words[2]))
        self.proxy = SimpleNamespace(store=store)
        self._feeds = SimpleNamespace(belie=lambda _work: "; belied", took=lambda _work, _cut: "; learnt")
        self._bystanders = SimpleNamespace(
            find=lambda _work: near,
            before=lambda _work: self.did.append("looked around"),
            watched=lambda _work: watched,
            silent=lambda _work, _off, _own: [4] if cut else [],
            cut=lambda _work, silent: list(cut) if silent else [],
        )

    def _on(self, boot):
        self.did.append("on and followed")

    def _ask(self, boot, state):
        self.did.append(f"asked {state}")

    def _spawn(self, work, *arguments):
        work(*arguments)

    _post = _spawn


@pytest.fixture
def board(monkeypatch):
    """A boot whose board gives the signs of life that are set, and shows nothing."""
    seen = SimpleNamespace(signs=[], shown=presence.SILENT, its_own=True)
    silence = SimpleNamespace(life=lambda: seen.signs)
    monkeypatch.setattr(proven_cuts.power_proof, "Silence", lambda _work: silence)
    monkeypatch.setattr(proven_cuts.power_proof, "are_its_own", lambda signs, _shown: bool(signs) and seen.its_own)
    monkeypatch.setattr(proven_cuts.power_proof, "contradiction", lambda _work, signs: f"{signs[0]} although it is off")
    monkeypatch.setattr(proven_cuts.presence, "shown", lambda _work: seen.shown)
    monkeypatch.setattr(proven_cuts, "fault_of", lambda _driver, _board: None)
    monkeypatch.setattr(proven_cuts, "undo_of_cut", lambda _work, _feeds, cut: SimpleNamespace(note=f"cut {cut}"))
    work = SimpleNamespace(over=False, driver="driver", outlet_name="a outlet 3")
    own = SimpleNamespace(id=3, name="board3")
    seen.boot = SimpleNamespace(work=work, board=own, cycled=False, off=None, then=None, undo=None, doomed=None)
    return seen


def test_others_are_looked_at_before_the_outlet_goes_off(board):
    """Lost: which of them answered before, without which its silence proves nothing."""
    loop = Loop(near=True)
    loop._cut(board.boot)
    assert loop.did == ["looked around", "asked off"]
    alone = Loop()
    alone._cut(board.boot)
    assert alone.did == ["asked off"]


def test_a_board_whose_work_ended_meanwhile_is_not_cut(board):
    """Lost: a board that somebody stopped the boot of."""
    board.boot.work.over = True
    loop = Loop(near=True)
    loop._cut(board.boot)
    assert loop.did == ["looked around"]


def test_a_silent_board_goes_on_to_its_boot(board):
    """Lost: the boot."""
    loop = Loop()
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["on and followed"]
    assert board.boot.undo is None


def test_a_board_that_lives_on_has_its_outlet_on_again(board):
    """Lost: the board that the outlet feeds in truth, which would stay without power."""
    board.signs = ["its console says more"]
    loop = Loop()
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["asked on"]
    assert board.boot.doomed == board.boot.undo.note == "its console says more although it is off"
    assert board.boot.undo.learn(None) == "; belied"


def test_signs_of_another_machine_prove_nothing(board):
    """Lost: the boot, to a stranger that answers at the board's address."""
    board.signs, board.its_own = ["port 22 answers"], False
    loop = Loop()
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["on and followed"]


def test_a_drivers_own_mistake_proves_nothing(board, monkeypatch):
    """Lost: the same, to a mistake in a site's driver."""
    monkeypatch.setattr(proven_cuts, "fault_of", lambda _driver, _board: "broke off")
    board.signs = ["it answers"]
    loop = Loop()
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["on and followed"]


def test_another_tenants_board_that_fell_silent_gets_its_power_back(board):
    """Lost: that board."""
    loop = Loop(watched=True, cut=["board4"])
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["asked on"]
    assert board.boot.doomed == "cut ['board4']"


def test_what_is_to_stay_off_is_written_down_and_only_others_are_listened_to(board):
    """Lost: an event that says why an outlet is off; or a board that is given up, taken for one that lives on."""
    board.signs = ["it answers"]
    loop = Loop(watched=True)
    loop._prove_cut(board.boot, lambda _boot: loop.did.append("given up"))
    assert loop.did == ["a outlet 3 stays off", "given up"]
    loop.did.clear()
    unwatched = Loop()
    unwatched._prove_cut(board.boot, lambda _boot: unwatched.did.append("given up"))
    assert unwatched.did == ["a outlet 3 stays off", "given up"]


def test_one_proof_is_enough_for_a_boot(board):
    """Lost: seconds of listening, each time that the outlet is cycled again."""
    loop = Loop()
    loop._prove_cut(board.boot, loop._on)
    board.signs = ["it answers"]
    loop._prove_cut(board.boot, loop._on)
    assert loop.did == ["on and followed", "on and followed"]
