# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of one call that are on their way. Whole boots are in test_lifecycle.py."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import BOOTING, SWITCHING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.bystanders import Bystanders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


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

    store = SimpleNamespace(lost=list, kept_boards=list, begun=dict)
    proxy = SimpleNamespace(store=store, config=SimpleNamespace(pdus={}))
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


@pytest.mark.parametrize("current", [True, False])
@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize("stage", [BOOTING, SWITCHING])
def test_only_who_watches_a_board_now_is_heard(current, over, stage):
    """Lost: a board that boots is called running by the answer of the system before its power cut."""
    heard, call = [], Starting.__new__(Starting)
    watching = threading.Event()
    boot = SimpleNamespace(work=SimpleNamespace(over=over), stage=stage, phase=lambda *step: heard.append("step"))
    boot.watching = watching if current else threading.Event()
    call._on_ssh(boot, watching, lambda *said: heard.append("answer"), True, 1.0)
    call._on_step(boot, watching, "tftp", "kernel fetched", 1.0)
    expected = ["answer"] + (["step"] if stage == BOOTING else [])
    assert heard == (expected if current and not over else [])


def test_who_waits_for_a_board_waits_no_longer_than_the_call():
    """Lost: minutes at the end of each verb, for threads that listen to boards which need not be listened to."""
    call = Starting.__new__(Starting)
    boots = [SimpleNamespace(cancelled=threading.Event(), has_power=threading.Event()) for _number in range(2)]
    closed, call._ended = [], threading.Event()
    call.boots, call.lines = dict(enumerate(boots)), {"pdu-a": SimpleNamespace(close=lambda: closed.append("pdu-a"))}
    call._end_threads()
    assert all(event.is_set() for boot in boots for event in (boot.cancelled, boot.has_power))
    assert call._ended.is_set()
    assert closed == ["pdu-a"]


@pytest.mark.parametrize(
    ("state", "to_start", "moved"), [("running", True, True), ("running", False, False), ("booting", True, False)]
)
def test_a_board_is_booting_before_its_power_is_cut_for_a_boot(state, to_start, moved):
    """Lost: who looks in between sees a running board without power, and takes it for somebody's fault."""
    did, call = [], Starting.__new__(Starting)
    call._bystanders = Bystanders(SimpleNamespace(boards={}, config=SimpleNamespace(pdus={})), [])
    work = SimpleNamespace(board=SimpleNamespace(id=0), driver=None, pdu="pdu-a", outlet="1", doubt=None, state=state)
    work.move = did.append
    call._ask = lambda boot, power: did.append(power)
    boot = SimpleNamespace(work=work, stage=None, then=None, way=None)
    call._off(boot, call._on if to_start else call._quarantine)
    assert did == (["booting"] if moved else []) + ["off"]
    assert (boot.stage, boot.way) == (SWITCHING, "on → off → on")
