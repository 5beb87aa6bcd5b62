# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boards have power, by what their PDUs say; the PDUs are a stand-in for a session."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import outlet_power as module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_sessions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

#: Board → how it is wired, as proxy.json has it.
WIRING = {
    "1": {"pdu": "pdu-a", "outlet": "3"},
    "2": {"pdu": "pdu-a", "outlet": "4"},
    "3": {"pdu": "pdu-b", "outlet": "1"},
    "4": {"pdu": "pdu-b"},
    "5": {"outlet": "7"},
    "6": {"pdu": "pdu-a", "outlet": "9"},
    "7": {"pdu": "pdu-a", "outlet": "8"},
}


@pytest.fixture
def pdus(monkeypatch):
    """Those that answer, by name: {outlet: state}, or an error. `pdus.asked` is what was said at each login."""
    one = SimpleNamespace(answers={}, asked=[], tells=[])

    @contextmanager
    def session(name, settings, secrets, deadline, run_folder, actor, tell):
        one.asked.append((name, settings, secrets, deadline, run_folder, actor))
        one.tells.append(tell)
        answer = one.answers[name]
        if isinstance(answer, Exception):
            raise answer
        yield SimpleNamespace(status=answer if callable(answer) else lambda: answer)

    monkeypatch.setattr(pdu_sessions, "session", session)
    one.proxy = SimpleNamespace(
        config=ProxyConfig(run_folder="/run/t"),
        actor="jackie",
        board=lambda number: {"board": number},
        wiring=lambda board: Wire(**WIRING[board["board"]]),
        pdu=lambda name: ({"host": name}, {"username": "apc"}),
        silent_pdus={},
    )
    return one


def boards(*numbers):
    return [{"id": number, "power": "old", "power_seen": 1.0} for number in numbers]


def test_a_board_has_the_power_of_its_outlet(pdus):
    """Lost: whether a board runs; and since when that is known, for who reads it minutes later."""
    pdus.answers = {"pdu-a": {"3": "on", "4": "off"}, "pdu-b": {"1": "pending"}}
    seen, deadline, before = boards("1", "2", "3", "4", "5"), Deadline(60), time.time()
    assert module.outlet_power(pdus.proxy, seen, deadline) == {}
    assert {board["id"]: board["power"] for board in seen} == {
        "1": "on",
        "2": "off",
        "3": "pending",
        "4": None,
        "5": None,
    }
    assert all(before <= board["power_seen"] <= time.time() for board in seen[:3])
    assert [board["power_seen"] for board in seen[3:]] == [None, None]
    rest = ({"username": "apc"}, deadline, "/run/t", "jackie")
    assert sorted(pdus.asked, key=str) == [(name, {"host": name}, *rest) for name in ("pdu-a", "pdu-b")]
    assert pdus.tells == [None, None]


def test_a_pdu_that_does_not_answer_is_named_and_hides_no_other(pdus):
    """Lost: the power of all boards, for one PDU that is away; or that nothing is known of its own boards now."""
    pdus.answers = {"pdu-a": {"3": "on"}, "pdu-b": Busy("has another user", "pdu-b", "wait")}
    seen = boards("1", "3")
    assert module.outlet_power(pdus.proxy, seen, Deadline(60)) == {"pdu-b": "pdu-b: has another user: wait"}
    assert [board["power"] for board in seen] == ["on", None]
    assert seen[1]["power_seen"] is None


def test_an_outlet_that_its_pdu_does_not_have_is_named(pdus):
    """Lost: why a board's power is not known: its wiring names an outlet that is not there."""
    pdus.answers = {"pdu-a": {"3": "on"}}
    seen = boards("1", "6", "7")
    errors = module.outlet_power(pdus.proxy, seen, Deadline(60))
    assert list(errors) == ["pdu-a"]
    assert errors["pdu-a"].startswith("pdu-a: has no outlet 9, 8: ")
    assert [board["power"] for board in seen] == ["on", None, None]


def test_all_pdus_are_asked_at_the_same_time(pdus, monkeypatch):
    """Lost: the seconds of each PDU's login, one after the other, for who looks at a rack."""
    names = [f"pdu-{number}" for number in range(100)]
    together = threading.Barrier(len(names))

    def status():
        together.wait(60)
        return {"1": "on"}

    made, pool = [], module.ThreadPoolExecutor
    monkeypatch.setattr(module, "ThreadPoolExecutor", lambda max_workers: made.append(max_workers) or pool(max_workers))
    pdus.answers = dict.fromkeys(names, status)
    told = module.statuses(pdus.proxy, iter(names), Deadline(60))
    assert told == dict.fromkeys(names, ({"1": "on"}, None))
    assert list(told) == names
    assert made == [100], "of a thousand PDUs not all are asked at once"


def test_what_a_pdu_is_waited_for_is_told_with_its_name(pdus):
    """Lost: which of several PDUs is waited for."""
    told = []
    pdus.answers = {"pdu-a": {"1": "on"}, "pdu-b": Busy("has another user", "pdu-b", "wait")}
    answers = module.statuses(pdus.proxy, ["pdu-b", "pdu-a"], Deadline(60), lambda *words: told.append(words))
    assert list(answers.items()) == [
        ("pdu-b", ({}, "pdu-b: has another user: wait")),
        ("pdu-a", ({"1": "on"}, None)),
    ]
    for tell in pdus.tells:
        tell("it hangs")
    assert sorted(told) == [("pdu-a", "it hangs"), ("pdu-b", "it hangs")]
