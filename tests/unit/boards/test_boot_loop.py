# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of one call that are on their way. Whole boots are in boot/test_lifecycle.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils.boards.booting import SWITCHING
from ansible_collections.hetero.compute.plugins.module_utils.boards.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils.boards.starting import Starting
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError


def test_an_outlet_that_does_not_obey_is_the_fault_of_its_own_board():
    """Lost: the boards beside it on its PDU, and those at outlets of its number on other PDUs, out of use for it."""
    out_of_use = []

    def work(number, pdu, outlet):
        return SimpleNamespace(
            board=SimpleNamespace(id=number),
            pdu=pdu,
            outlet=outlet,
            over=False,
            evidence={},
            say=lambda phase, text: None,
            quarantine=lambda note, more: out_of_use.append(number),
        )

    proxy = SimpleNamespace(store=SimpleNamespace(lost=list, kept_boards=list))
    works = [work(0, "pdu-a", "5"), work(1, "pdu-a", "6"), work(2, "pdu-b", "5")]
    call = Starting(proxy, works, Options())
    for boot in call.boots.values():
        boot.stage = SWITCHING
    call._on_refused("pdu-a", "5", HeteroError("still off", "outlet 5 of pdu-a", "look at it"))
    assert out_of_use == [0]


def test_boards_of_a_pdu_and_of_an_outlet():
    boots = [SimpleNamespace(work=SimpleNamespace(pdu=pdu, outlet=outlet)) for pdu, outlet in ("a1", "a2", "b1")]
    call = Starting.__new__(Starting)
    call.boots = dict(enumerate(boots))
    assert call._of("a") == boots[:2]
    assert call._of("a", "2") == [boots[1]]
    assert call._of("b", "2") == []
