# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards of a loop by their wiring. If these fail, an answer of a PDU counts for another board, or a line to a PDU
is closed while a board still needs it.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    ASKED,
    BOOTING,
    QUEUED,
    SWITCHING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.wired_boots import WiredBoots


def boot(pdu, outlet, stage=SWITCHING, over=False):
    return SimpleNamespace(work=SimpleNamespace(pdu=pdu, outlet=outlet, over=over), stage=stage)


class Loop(WiredBoots):
    """Nothing is switched here."""

    _all_works = _on_down = _on_refused = _on_status = _on_switched = None


@pytest.fixture
def loop():
    made = Loop(SimpleNamespace())
    made.boots = {1: boot("a", "1"), 2: boot("a", "2"), 3: boot("b", "1"), 4: boot("a", "2")}
    return made


def test_whom_an_answer_is_about(loop):
    """Lost: the board whose outlet was switched."""
    assert list(loop._of("a", "2")) == [loop.boots[2], loop.boots[4]]
    assert list(loop._of("a")) == [loop.boots[1], loop.boots[2], loop.boots[4]]
    assert list(loop._of("c")) == []


@pytest.mark.parametrize("stage", [ASKED, BOOTING, QUEUED])
def test_a_pdu_is_needed_while_one_of_its_boards_asks(loop, stage):
    """Lost: the PDU's only session, to a board that asks nothing; or a board's, in the middle."""
    assert loop._asks("a")
    assert loop._asking("a") == [loop.boots[number].work for number in (1, 2, 4)]
    loop.boots[1].stage = stage
    loop.boots[2].work.over = True
    assert loop._asking("a") == [loop.boots[4].work]
    assert loop._asks("a")
    loop.boots[4].stage = stage
    assert loop._asking("a") == []
    assert not loop._asks("a")
    assert loop._asks("b")
