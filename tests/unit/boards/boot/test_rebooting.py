# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that was told to reboot and did not. Whole reboots are in boot/test_soft_reboot.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import reboots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import DECIDING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle


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
