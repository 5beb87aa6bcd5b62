# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a line to a PDU asks for, and when its session ends. The session is played; real ones: test_pdu_line.py."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line, pdu_sessions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    Busy,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import OutletsFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


@pytest.fixture
def line(monkeypatch):
    """Not begun. `line.told` has what happened, in its order; `line.fails` are the errors of its next batches."""
    told, fails = [], []

    @contextmanager
    def session(name, settings, secrets, deadline, run_folder, actor, tell):
        told.append(f"log in to {name}")
        one.logins.append((settings, secrets, deadline.seconds, run_folder, actor, tell))
        yield SimpleNamespace(status=lambda: {"1": "off"}, drawn=lambda outlets: {})
        told.append("log out")

    def set_outlets(pdu, wanted, deadline, report):
        left = pdu.still(list(wanted))
        told.extend([{outlet: wanted[outlet] for outlet in left}] if left else [])
        assert (report, deadline.seconds) == (one._on_done, one.seconds)
        error = fails.pop(0) if fails else None
        if error:
            raise error  # pylint: disable=raising-bad-type

    monkeypatch.setattr(pdu_sessions, "session", session)
    monkeypatch.setattr(pdu_line, "set_outlets", set_outlets)
    proxy = SimpleNamespace(config=ProxyConfig(run_folder="/run/t"), actor="jackie", silent_pdus={})
    proxy.pdu = lambda name: ({"host": name}, {"username": "apc"})
    listener = pdu_line.Listener(
        on_status=lambda outlets: told.append(("status", outlets)),
        on_switched=lambda *_done: None,
        on_refused=lambda outlet, error: told.append(("refused", outlet, error)),
        on_down=lambda line, error: told.append(("down", line, error)),
        on_wait=print,
    )
    one = pdu_line.PduLine(proxy, "pdu-t", 60.0, listener)
    one.told, one.fails, one.logins = told, fails, []
    return one


def test_nothing_that_comes_in_time_is_nothing(line):
    assert line._next(0) == {}


LOGIN, STATUS = "log in to pdu-t", ("status", {"1": "off"})


def test_what_is_asked_for_meanwhile_goes_in_one_command(line):
    """Lost: the seconds of an order for each outlet; or the last order for an outlet that has two."""
    for outlet, state in (("1", "on"), ("2", "on"), ("1", "off")):
        line.ask(outlet, state)
    line.close()
    line.run()
    assert line.told == [LOGIN, STATUS, {"1": "off", "2": "on"}, "log out"]
    assert line.logins == [({"host": "pdu-t"}, {"username": "apc"}, 60.0, "/run/t", "jackie", print)]


def test_what_is_asked_before_the_end_is_done_and_no_more(line):
    line.close()
    line.run()
    assert line.told == [LOGIN, STATUS, "log out"]


@pytest.mark.parametrize(("left", "logins"), [(0.51, 1), (0.5, 1), (0.49, 2)])
def test_what_a_session_has_no_time_for_is_done_in_another(line, monkeypatch, left, logins):
    """Lost: an outlet whose order the end of a session cuts off; or a login for each of them."""
    monkeypatch.setattr(pdu_line, "Deadline", lambda seconds: SimpleNamespace(seconds=seconds, left=left * seconds))
    line.ask("1", "on")
    line.close()
    line.run()
    again = ["log out", LOGIN] if logins == 2 else []
    assert line.told == [LOGIN, STATUS, *again, {"1": "on"}, "log out"]


def test_a_session_that_is_idle_is_left_and_the_status_told_once(line, monkeypatch):
    """Lost: the PDU's place while a board boots; or a status of later, which boards take for the one before."""
    waits, next_one = [], line._next

    def asked_late(seconds):
        waits.append(seconds)
        if seconds is not None:
            return {}
        line.ask("1", "on")
        line.close()
        return next_one(seconds)

    monkeypatch.setattr(line, "_next", asked_late)
    line.run()
    assert waits == [3.0, None]
    assert line.told == [LOGIN, STATUS, "log out", LOGIN, {"1": "on"}, "log out"]


def test_what_its_last_look_spares_is_not_switched(line):
    """Lost: a board that came up while its PDU was waited for; or the order of another board beside it."""
    looked = []

    def last_look(outlet, still):
        return lambda: looked.append((outlet, LOGIN in line.told)) or still

    line.ask("1", "off", last_look(1, False))
    line.ask("2", "off", last_look(2, True))
    line.ask("3", "on")
    line.close()
    line.run()
    assert sorted(looked) == [(1, True), (2, True)]
    assert line.told == [LOGIN, STATUS, {"2": "off", "3": "on"}, "log out"]


def test_where_all_is_spared_nothing_is_switched(line):
    line.ask("1", "off", lambda: False)
    line.close()
    line.run()
    assert line.told == [LOGIN, STATUS, "log out"]


def test_a_last_look_is_of_the_newest_order(line):
    """Lost: an outlet that is to be on, for what its board showed before."""
    line.ask("1", "off", lambda: False)
    line.ask("1", "on")
    line.close()
    line.run()
    assert line.told == [LOGIN, STATUS, {"1": "on"}, "log out"]


def test_an_outlet_that_does_not_obey_does_not_stop_the_line(line, monkeypatch):
    """Lost: all other boards of that PDU, for one relay that is stuck."""
    stuck = HeteroError("still off", "outlet 1 of pdu-t", "check its relay")
    line.fails.append(OutletsFailed({}, {"1": stuck}, {}))
    line.ask("1", "on")
    line.close()
    line.run()
    assert line.told == [LOGIN, STATUS, {"1": "on"}, ("refused", "1", stuck), "log out"]


@pytest.mark.parametrize("kind", [BadInput, Busy, Lost, TimedOut])
def test_what_is_no_fault_of_an_outlet_ends_the_line(line, kind):
    """Lost: a board is taken out of use for its PDU's fault; or it is waited for a line that is over."""
    stuck = HeteroError("still off", "outlet 1 of pdu-t", "check its relay")
    lost = kind("no answer", "pdu-t", "look at it")
    line.fails.append(OutletsFailed({}, {"1": stuck, "2": lost}, {}))
    line.ask("1", "on")
    line.ask("2", "on")
    line.run()
    assert line.told[3:] == [("refused", "1", stuck), ("down", line, lost)]


def test_a_disk_that_is_full_is_the_end_of_the_line_and_has_its_name(line, monkeypatch):
    """Lost: which PDU it was; an error that nobody told would end the whole verb."""

    @contextmanager
    def session(*_given):
        raise OSError(28, "No space left on device")
        yield  # pylint: disable=unreachable

    monkeypatch.setattr(pdu_sessions, "session", session)
    line.run()
    [(kind, which, error)] = line.told
    assert (kind, which, error.thing) == ("down", line, "pdu-t")
