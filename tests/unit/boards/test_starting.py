# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of one call that are on their way. Whole boots are in boot/test_lifecycle.py."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.boards.booting import DECIDING, SWITCHING
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
    starting = Starting(proxy, works, Options())
    for boot in starting.boots.values():
        boot.stage = SWITCHING
    starting._on_refused("pdu-a", "5", HeteroError("still off", "outlet 5 of pdu-a", "look at it"))
    assert out_of_use == [0]


@pytest.mark.parametrize("stage_over", [(DECIDING, False, True), (SWITCHING, False, False), (DECIDING, True, False)])
@pytest.mark.parametrize(
    ("outlet", "as_rebuilt", "state", "check", "seen", "ended"),
    [
        ("on", False, "booting", False, "on", False),
        ("on", False, "running", False, "on", False),
        ("off", False, "running", False, "off", False),
        ("off", False, "power off", False, "off", False),
        ("off", False, "booting", False, "off", True),
        ("off", False, "shutting down", False, "off", True),
        ("off", False, "booting", True, "off", False),
        # a dry run of a rebuild takes what is there as gone
        ("on", True, "running", True, "off", False),
    ],
)
def test_what_the_status_of_its_outlet_says_of_a_board(stage_over, outlet, as_rebuilt, state, check, seen, ended):
    """Lost: a played or emulated board that a killed play switched off goes on as if it had power; or one that runs
    is told that it has none.
    """
    stage, over, asked = stage_over
    told, decided = [], []
    work = SimpleNamespace(pdu="pdu-a", outlet="5", over=over, as_rebuilt=as_rebuilt, state=state)
    work.power_seen = told.append
    work.driver = SimpleNamespace(switched=lambda board, now: told.append((board, now)))
    boot = SimpleNamespace(work=work, board="board0", stage=stage, outlet_now=None, has_power=threading.Event())
    starting = Starting.__new__(Starting)
    starting.boots, starting.check, starting._decide = {0: boot}, check, decided.append
    starting._on_status("pdu-b", {"5": outlet})
    assert (told, decided) == ([], [])
    starting._on_status("pdu-a", {"5": outlet})
    if not asked:
        assert (told, decided, boot.outlet_now) == ([], [], None)
        return
    assert boot.outlet_now == seen
    assert told == ([seen, ("board0", "off")] if ended else [seen])
    assert decided == [boot]
    assert boot.has_power.is_set() is (seen == "on")


def test_an_outlet_that_its_pdu_does_not_have_is_the_wirings_fault():
    failed = []
    work = SimpleNamespace(pdu="pdu-a", outlet="5", over=False, board=SimpleNamespace(name="board0"))
    work.fail = lambda blame, error: failed.append((blame, error.what))
    boot = SimpleNamespace(work=work, board="board0", stage=DECIDING, outlet_now="old")
    starting = Starting.__new__(Starting)
    starting.boots = {0: boot}
    starting._on_status("pdu-a", {"4": "on"})
    assert failed == [("proxy", "pdu-a has no outlet 5 (it has 4)")]


def test_boards_of_a_pdu_and_of_an_outlet():
    boots = [SimpleNamespace(work=SimpleNamespace(pdu=pdu, outlet=outlet)) for pdu, outlet in ("a1", "a2", "b1")]
    starting = Starting.__new__(Starting)
    starting.boots = dict(enumerate(boots))
    assert starting._of("a") == boots[:2]
    assert starting._of("a", "2") == [boots[1]]
    assert starting._of("b", "2") == []
