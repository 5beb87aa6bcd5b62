# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a PDU when the time is up: what it, or the program in between, said last; with no secret in it.

Without it, "no answer within 0.0 s" is all that people hear of a PDU that said minutes ago what was wrong.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    Busy,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry, snmp
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer, PowerDriver

SECRET = "xyzzy-1957"


class Played(PowerDriver):
    """A PDU whose words are a list: an error is raised, anything else is the answer; the last is said for ever."""

    script: list = []  # noqa: RUF012 - each test sets its own

    def login(self):
        self._next("login", None)

    def logout(self):
        """Nothing is open."""

    def status(self):
        return self._next("status", {"1": "off"})

    def switch(self, outlets, state):
        return self._next("switch", dict.fromkeys(outlets, Answer(True, "OK")))

    def _next(self, asked, usual):
        if not self.script or self.script[0][0] != asked:
            return usual
        said = self.script[0][1] if len(self.script) == 1 else self.script.pop(0)[1]
        if said in ("cut off", "silence", "no time"):
            while self.deadline.left > (0.005 if said == "cut off" else 0):
                self.deadline.nap(0.004)
            late = TimedOut("no time left to ask fence_x", self.name, "raise timeout")
            lost = Lost("no answer within 0.0 s; it had said nothing", self.name, "look at the PDU")
            said = late if said == "no time" else lost
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """How switching outlet 1 on ends at a PDU that says this."""
    monkeypatch.setitem(registry.DRIVERS, "played", Played)

    def end(*script, seconds=(0.6, 6.0, 60.0), has=""):
        for limit in seconds:  # a busy machine needs longer to come to the last word
            monkeypatch.setattr(Played, "script", list(script))
            deadline = Deadline(limit)
            opened = power.session("pdu-t", {"driver": "played"}, {}, deadline, str(tmp_path))
            with pytest.raises(HeteroError) as caught, opened as pdu:
                power.set_outlets(pdu, {"1": "on"}, deadline)
            if has in str(caught.value):
                break
        return str(caught.value)

    return end


BUSY = Busy("has no place for us: Another user is logged in", "pdu-t", "wait for its other user")


@pytest.mark.parametrize("how", ["cut off", "silence"])
def test_a_place_that_was_taken_before_is_not_why_it_hangs_now(ended, how):
    """Lost: where to look; a colleague would be asked to leave a PDU that he left long ago."""
    said = ended(("login", BUSY), ("switch", how), has="lost over it")
    assert "the PDU was lost over it: no answer within" in said
    assert "Another user" not in said


@pytest.mark.parametrize("how", ["cut off", "silence"])
def test_what_was_said_before_the_time_was_nearly_up(ended, how):
    """Lost: that the place was taken, where the last attempt was cut off some milliseconds before the time was up."""
    said = ended(("login", BUSY), ("login", how), has="Another user")
    assert re.match(r"pdu-t: has no place for us: Another user is logged in \(gave up after [\d.]+ s\)", said)


def test_a_driver_whose_own_time_is_up(ended):
    """Lost: what the PDU said to the attempt before."""
    said = ended(("login", BUSY), ("login", "no time"), has="Another user")
    assert re.match(r"pdu-t: has no place for us: Another user is logged in \(gave up after [\d.]+ s\)", said)


def test_a_drivers_own_limit_is_no_end_of_time(ended):
    """Lost: what a driver of a site knows; it would be asked again until the time is up, or an older word be told."""
    own = TimedOut("its relay took longer than 3 s", "pdu-t", "listen to it")
    assert ended(("login", BUSY), ("login", own), seconds=[60]) == f"{own}"


# --- programs in between


@pytest.fixture
def program(tmp_path):
    """The settings of a driver whose program is this; it can be told by its name."""

    def write(driver, body):
        path = tmp_path / ("fence_t" if driver == "fence" else "my_pdu")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        key = "agent" if driver == "fence" else "script"
        return {"driver": driver, key: str(path), "host": "10.0.100.9", "outlets": ["5", "6"]}

    return write


def failure(settings, folder, seconds):
    """The error of a look at its outlets."""
    secrets = {"username": "apc", "password": SECRET}
    opened = power.session("pdu-t", settings, secrets, Deadline(seconds), str(folder))
    with pytest.raises(HeteroError) as caught, opened as pdu:
        pdu.status()
    assert SECRET not in repr(caught.value.failure)
    return caught.value


@pytest.mark.parametrize("driver", ["fence", "command"])
def test_a_program_that_hangs_says_what_it_heard(program, tmp_path, driver):
    """Lost: why the PDU cannot be read, which the program said before it hung; or the password, which it said, too."""
    body = f"cat >/dev/null; echo first; echo 'relay board {SECRET} not found' >&2; exec sleep 60"
    error = failure(program(driver, body), tmp_path, 2)
    assert isinstance(error, TimedOut)
    assert re.search(r"did not end within [\d.]+ s; last heard: relay board \*{8} not found", error.what), error.what


@pytest.mark.parametrize("driver", ["fence", "command"])
def test_a_program_that_hangs_without_a_word(program, tmp_path, driver):
    error = failure(program(driver, "exec sleep 60"), tmp_path, 1)
    assert re.search(r"did not end within [\d.]+ s( \(gave up after 1 s\))?$", error.what), error.what


@pytest.mark.parametrize("driver", ["fence", "command"])
def test_a_program_that_takes_long_for_each_outlet(program, tmp_path, driver):
    """Lost: what it says of the first outlet, where there is no time left for the second."""
    answer = 'in=$(cat); case "$in" in *list*) exit 1;; esac; ' if driver == "fence" else ""
    for seconds in (2, 20):  # a busy machine needs longer to begin the second
        error = failure(program(driver, f"{answer}echo on; sleep {0.6 * seconds}; exit 0"), tmp_path, seconds)
        if "last heard" in error.what:
            break
    assert isinstance(error, TimedOut)
    assert "; last heard: on" in error.what, error.what


@pytest.mark.parametrize("driver", ["fence", "command"])
def test_no_program_tells_the_password(program, tmp_path, driver):
    """Lost: the password, to whoever reads the play's output."""
    body = f"cat >/dev/null; echo 'login {SECRET} refused' >&2; exit 4"
    assert "login ******** refused" in failure(program(driver, body), tmp_path, 20).what


def asked_late(monkeypatch, left, said=None, **settings):
    one = snmp.Snmp("pdu-t", {"host": "10.0.100.9", **settings}, {}, Deadline(left))
    one._folder = SimpleNamespace(name="/folder")
    done = SimpleNamespace(returncode=1, stdout="", stderr="Timeout: No Response from udp:10.0.100.9:161.")

    def ended(*_given, **_more):
        if said:
            raise said
        return done

    monkeypatch.setattr(snmp, "ended", ended)
    with pytest.raises(Lost) as caught:
        one._ask("snmpget", "1.3")
    return caught.value


def test_a_question_by_snmp_that_is_cut_off(monkeypatch):
    """Lost: that nobody waited; a PDU would be told as silent that had no time to answer, and a community doubted."""
    assert asked_late(monkeypatch, 0.1).what == "its time was up before it could answer by SNMP"
    assert asked_late(monkeypatch, 0.1).remedy == "raise timeout"
    assert asked_late(monkeypatch, 9).what.startswith("no answer by SNMP (Timeout: No Response")


def test_a_name_that_is_not_resolved_is_no_wrong_community(monkeypatch):
    """Lost: that it is the name server; net-snmp says nothing while it waits for it."""
    late = TimedOut("snmpget did not end within 9 s", "pdu-t", "look at the PDU")
    error = asked_late(monkeypatch, 9, late, host="pdu-t.example")
    assert error.what == (
        "cannot be reached: nothing was heard of pdu-t.example, whose name may not be known "
        "(snmpget did not end within 9 s)"
    )
    assert error.remedy.startswith("check its host and the name servers of node ")
    assert asked_late(monkeypatch, 9, late).what == "no answer by SNMP (snmpget did not end within 9 s)"
