# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one session of a PDU while a verb waits for its boards: others get in, and the verb comes back.

The PDU is the lab's emulator over real telnet.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu, until

#: What a busy machine may take for what should take a second or two.
LONG = 60.0


@pytest.fixture
def pdu(tmp_path):
    one = EmulatedPdu(tmp_path)
    yield one
    one.stop()


@pytest.fixture
def line(pdu):
    """A function that opens a line; all end with the test. `said` has what it tells, in its order."""
    lines = []

    def start(seconds=60.0):
        config = ProxyConfig(run_folder=str(pdu.folder / "locks"))
        given = (pdu.settings, pdu.secrets)
        proxy = SimpleNamespace(config=config, actor="jackie", silent_pdus={}, pdu=lambda name: given)
        said = queue.Queue()
        listener = pdu_line.Listener(
            on_status=lambda outlets: said.put(("status", outlets["1"])),
            on_switched=lambda outlet, before, after, _seconds: said.put((outlet, before, after)),
            on_refused=lambda outlet, error: said.put(("refused", outlet, str(error))),
            on_down=lambda line, error: said.put(("down", str(error))),
            on_wait=lambda text: said.put(("wait", text)),
        )
        one = pdu_line.PduLine(proxy, "pdu-t", seconds, listener)
        one.said, one.thread = said, threading.Thread(target=one.run)
        one.thread.start()
        lines.append(one)
        return one

    yield start
    for one in lines:
        one.close()
        one.thread.join(LONG)
        assert not one.thread.is_alive()


def heard(line, *wanted):
    """Until it tells this; what it waits for beside."""
    told = []
    while wanted not in told:
        told.append(line.said.get(timeout=LONG))
    return told


def asked_for_its_name(person):
    """Until the PDU has let somebody in at a terminal."""
    person.settimeout(LONG)
    seen = b""
    while b"User Name" not in seen:
        seen += person.recv(100) or pytest.fail(f"sent away: {seen}")


def test_who_waits_for_a_silent_board_lets_others_in(pdu, line):
    """Lost: minutes for every other play and person at that PDU, which waits for a board that says nothing."""
    one = line()
    assert one.said.get(timeout=LONG) == ("status", "off")
    # another process's verb, which has the lock's turn first
    with power.session("pdu-t", pdu.settings, pdu.secrets, Deadline(LONG), str(pdu.folder / "locks")) as other:
        assert power.set_outlets(other, {"2": "on"}, Deadline(LONG))["2"]["after"] == "on"
    # a person at a terminal
    with socket.create_connection(("127.0.0.1", pdu.port), LONG) as person:
        asked_for_its_name(person)
    # and it is back when there is something to do
    one.ask("1", "on")
    heard(one, "1", "off", "on")
    assert pdu.logins >= 3


def test_who_is_asked_again_soon_keeps_its_session(pdu, line):
    """Lost: a login of seconds for each outlet of a rack."""
    one = line()
    assert one.said.get(timeout=LONG) == ("status", "off")
    one.ask("1", "on")
    heard(one, "1", "off", "on")
    one.ask("2", "on")
    heard(one, "2", "off", "on")
    one.close()
    one.thread.join(LONG)
    assert until(lambda: pdu.logins == 1)


def test_what_is_asked_late_has_time_of_its_own(pdu, line, monkeypatch):
    """Lost: the outlet of a board that was looked at for longer than a PDU is waited for."""
    monkeypatch.setattr(pdu_line, "IDLE", 0.2)
    one = line(seconds=5.0)
    assert one.said.get(timeout=LONG) == ("status", "off")
    time.sleep(5.5)  # its first session's time is over then
    one.ask("1", "on")
    heard(one, "1", "off", "on")


def test_a_session_that_is_asked_all_the_time_is_not_cut_off(pdu, line):
    """Lost: the last boards of a long row, whose outlets are asked for one after the other."""
    one = line(seconds=6.0)
    assert one.said.get(timeout=LONG) == ("status", "off")
    end = time.monotonic() + 8.0
    state = "off"
    while time.monotonic() < end:
        before, state = state, "off" if state == "on" else "on"
        one.ask("1", state)
        heard(one, "1", before, state)


def test_a_line_that_is_closed_while_idle_does_not_log_in_again(pdu, line, monkeypatch):
    """Lost: seconds at the end of each verb, and the PDU's one place for nothing."""
    monkeypatch.setattr(pdu_line, "IDLE", 0.05)
    one = line()
    assert one.said.get(timeout=LONG) == ("status", "off")
    assert until(lambda: pdu.logouts == 1)
    one.close()
    one.thread.join(LONG)
    assert not one.thread.is_alive()
    assert (pdu.logins, one.said.empty()) == (1, True)


def test_a_pdu_that_another_has_is_waited_for_with_words(pdu, line):
    """Lost: a minute without a word, in which nobody knows for what."""
    with power.session("pdu-t", pdu.settings, pdu.secrets, Deadline(LONG), str(pdu.folder / "locks"), actor="bob"):
        begun = time.monotonic()
        one = line()
        said = one.said.get(timeout=LONG)
        assert said[0] == "wait"
        assert said[1].startswith("pdu-t: held by power (bob, pid "), said
        assert time.monotonic() - begun < LONG
    heard(one, "status", "off")


def test_a_person_who_has_the_pdu_is_waited_for_with_words(pdu, line):
    with socket.create_connection(("127.0.0.1", pdu.port), LONG) as person:
        asked_for_its_name(person)
        one = line()
        kind, text = one.said.get(timeout=LONG)
        assert (kind, text.split(":")[:2]) == ("wait", ["pdu-t", " has no place for us"])
    heard(one, "status", "off")


def test_a_pdu_that_hangs_is_waited_for_with_words(pdu, line):
    pdu.change(faults={"hang": "login"})
    begun = time.monotonic()
    one = line(seconds=15.0)
    kind, text = one.said.get(timeout=LONG)
    assert (kind, text) == ("wait", "pdu-t: the login takes longer; it is waited for until 15 s are over")
    assert time.monotonic() - begun < 9, "the driver itself tells only after 10 s"
    while kind == "wait":
        kind, text = one.said.get(timeout=LONG)
    assert kind == "down"


def test_who_needs_not_wait_says_nothing(pdu, line):
    """Lost: what people read, to lines about waits that are none."""
    one = line()
    one.ask("1", "on")
    assert [kind for kind, *_rest in heard(one, "1", "off", "on")] == ["status", "1"]
