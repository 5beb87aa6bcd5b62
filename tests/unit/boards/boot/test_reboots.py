# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that was told to reboot and did not. Whole reboots are in boot/test_soft_reboot.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import reboots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import DECIDING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import askers


def test_no_session_of_a_pdu_is_held_while_a_board_is_asked_whose_it_is(monkeypatch):
    """Lost: minutes for all others of that PDU, which lets one in at a time, while a silent board is asked."""
    later = []
    loop = reboots.Rebooting.__new__(reboots.Rebooting)
    loop.options, loop.check, loop._spawn = lifecycle.Options(), False, later.append
    work = SimpleNamespace(pdu="pdu-a", outlet="1", over=False)
    boot = SimpleNamespace(work=work, outlet_now="on", stage=DECIDING, cancelled=None)
    loop.boots = {0: boot}
    assert loop._asks("pdu-a")
    loop._not_told(boot, "it is silent")
    assert not loop._asks("pdu-a")
    # and then by power
    done = []
    monkeypatch.setattr(reboots, "is_others", lambda work, cancelled: False)
    loop._post = lambda handler, *words: handler(*words)
    loop._by_power = lambda boot, why: done.append((boot.stage, why))
    later.pop()()
    assert done == [(DECIDING, "it is silent")]


def test_a_board_that_was_told_gets_its_turn_at_the_pdu(monkeypatch):
    """Lost: a board that hangs after its reboot by ssh, and is not cut, because the play was ended meanwhile."""
    monkeypatch.setattr(reboots, "SoftReboot", lambda boot, seconds: SimpleNamespace(obstacle=lambda: None))
    monkeypatch.setattr(reboots.power_marks, "begins", lambda *given: lambda: None)
    monkeypatch.setattr(reboots.console, "begin_anew", lambda proxy, board: None)
    loop = reboots.Rebooting.__new__(reboots.Rebooting)
    loop.options, loop.check, loop._softs, loop._spawn = lifecycle.Options(), False, {}, lambda told: None
    loop.proxy = SimpleNamespace(store=SimpleNamespace(event=lambda *given: None))
    boot = SimpleNamespace(board=SimpleNamespace(id=0), work=None, forget=lambda: None, stage=DECIDING)
    askers.asked_by(SimpleNamespace(is_gone=True, is_there=False))
    try:
        loop._tell(boot)
        askers.must_not_be_gone("pdu-a")
    finally:
        askers.asked_by(None)
