# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many outlets are switched on within a second: a breaker that trips takes a whole rack with it."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import inrush
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import whole_file


@pytest.fixture
def orders(monkeypatch):
    """What the PDU was told, in its order: (time, outlets, state)."""
    told = []
    switch = Fake.switch

    def noted(self, outlets, state):
        told.append((time.monotonic(), outlets, state))
        return switch(self, outlets, state)

    monkeypatch.setattr(Fake, "switch", noted)
    return told


@pytest.fixture
def batch(tmp_path):
    """A function that switches outlets of a PDU of ten, two a second."""
    path = tmp_path / "pdu.json"
    path.write_text(json.dumps({"outlets": {str(number): "off" for number in range(1, 11)}}))

    def switch(wanted, inrush=2, seconds=60.0, tell=None, banks=()):
        settings = dict(driver="fake", path=str(path), inrush=inrush, banks=list(banks))
        deadline = Deadline(seconds)
        with power.session("pdu-i", settings, {}, deadline, str(tmp_path / "run"), tell=tell) as opened:
            return power.set_outlets(opened, wanted, deadline)

    switch.path = path
    return switch


def most_within_a_second(orders):
    """The most outlets that were told to be on within one second."""
    times = [at for at, outlets, state in orders for _outlet in outlets if state == "on"]
    return max(sum(begin <= at < begin + 1.0 for at in times) for begin in times)


def test_no_more_than_its_inrush_are_switched_on_within_a_second(batch, orders):
    """Lost: the breaker of a rack whose boards are all switched on by one request."""
    told = []
    done = batch(dict.fromkeys("12345", "on"), tell=told.append)
    assert {seen["after"] for seen in done.values()} == {"on"}
    assert [outlets for _at, outlets, _state in orders] == [["1", "2"], ["3", "4"], ["5"]]
    assert most_within_a_second(orders) == 2


def test_one_that_waits_long_is_told(batch):
    """Lost: why a rack takes its time."""
    told = []
    batch(dict.fromkeys("12345", "on"), inrush=1, tell=told.append)
    assert [text for text in told if "1 a second are switched on (inrush)" in text]


def test_the_next_session_keeps_the_pace(batch, orders):
    """Lost: the breaker, where each of many plays switches one board on."""
    for outlet in "123":
        batch({outlet: "on"}, inrush=1)
    assert most_within_a_second(orders) == 1


def test_what_is_cycled_waits_to_be_on_and_off_at_once(batch, orders):
    """Lost: the seconds of a cut that needs no pace; and the breaker, by a reboot of all."""
    batch(dict.fromkeys("123", "on"), inrush=None)
    orders.clear()
    batch(dict.fromkeys("123", "cycled"))
    assert [(outlets, state) for _at, outlets, state in orders] == [
        (["1", "2", "3"], "off"),
        (["1", "2"], "on"),
        (["3"], "on"),
    ]


def test_after_a_lost_session_only_the_others_are_switched(batch, monkeypatch):
    """Lost: the pace, where a PDU hangs up in the middle."""
    switch, told = Fake.switch, []

    def hangs_up(self, outlets, state):
        told.append((time.monotonic(), outlets, state))
        answers = switch(self, outlets, state)
        if len(told) == 2:
            raise Lost("hung up", self.name, "look at it")
        return answers

    monkeypatch.setattr(Fake, "switch", hangs_up)
    assert {seen["after"] for seen in batch(dict.fromkeys("12345", "on")).values()} == {"on"}
    assert [outlets for _at, outlets, _state in told] == [["1", "2"], ["3", "4"], ["5"]]
    assert most_within_a_second(told) == 2


def test_its_time_may_be_up_before_all_had_their_turn(batch, orders):
    """Lost: which outlets are on by now, which are off still, and what to raise."""
    with pytest.raises(power.OutletsFailed, match=r"1 a second .*inrush.*: raise its inrush or the timeout") as caught:
        batch(dict.fromkeys("12345", "on"), inrush=1, seconds=4.0)
    read = json.loads(batch.path.read_text())["outlets"]
    assert 1 <= len(orders) < 5
    assert {outlet for outlet, state in read.items() if state == "on"} == {outlets[0] for _at, outlets, _on in orders}
    on = {outlet for outlet, state in read.items() if state == "on"}
    assert {outlet for outlet, seen in caught.value.results.items() if seen["after"] == "on"} == on
    assert set(caught.value.errors) == set("12345") - on
    assert "lost" not in str(caught.value)


def test_a_clock_that_was_set_back_holds_nobody(batch, tmp_path):
    """Lost: all boards of a PDU, until the clock has caught up."""
    batch({"1": "on"})
    [kept] = (tmp_path / "run" / "pdu-inrush").iterdir()
    kept.write_text(json.dumps([[time.time() + 3600.0, ""]] * 2))
    began = time.monotonic()
    batch({"2": "on"}, seconds=120.0)
    assert time.monotonic() - began < 100.0


@pytest.mark.parametrize("text", ["", "[", '{"a": 1}', '["x"]', "7", "[1.0]", '[["x", ""]]'])
def test_a_damaged_note_is_none(batch, tmp_path, text):
    """Lost: all boards of a PDU, by a file that says when, and no more."""
    batch({"1": "on"})
    [kept] = (tmp_path / "run" / "pdu-inrush").iterdir()
    kept.write_text(text)
    assert batch({"2": "on"})["2"]["after"] == "on"


def test_no_limit_that_lets_none_be_switched_on(batch):
    """Lost: a play's time, waiting for a turn that never comes."""
    with pytest.raises(BadInput, match="pdu-i: its inrush 0 lets no outlet be switched on"):
        batch({"1": "on"}, inrush=0)


def test_a_run_folder_that_cannot_be_written_to(batch, tmp_path, orders):
    """Lost: all boards of a PDU, or within one session the pace, by a full disk."""
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "pdu-inrush").write_text("a file is in its place")
    done = batch(dict.fromkeys("12345", "on"))
    assert {seen["after"] for seen in done.values()} == {"on"}
    assert most_within_a_second(orders) == 2


def test_a_pdu_of_two_names_has_one_inrush(batch, orders, tmp_path):
    """Lost: the breaker, of a PDU that the wiring calls by both names."""
    for name, outlet in (("pdu-i", "1"), ("pdu-old", "2")):
        settings, deadline = dict(driver="fake", path=str(batch.path), inrush=1), Deadline(60)
        with power.session(name, settings, {}, deadline, str(tmp_path / "run")) as opened:
            power.set_outlets(opened, {outlet: "on"}, deadline)
    assert most_within_a_second(orders) == 1


def test_who_comes_after_one_that_was_killed_while_it_switched(batch, orders):
    """Lost: the breaker, by a play that was killed and is run again at once."""
    child = os.fork()
    if child == 0:
        switch = Fake.switch

        def killed(self, outlets, state):
            switch(self, outlets, state)
            os.kill(os.getpid(), signal.SIGKILL)

        Fake.switch = killed
        batch({"1": "on"}, inrush=1)
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(batch.path.read_text())["outlets"]["1"] == "on"
    killed_at = time.time()
    [kept] = (batch.path.parent / "run" / "pdu-inrush").iterdir()
    assert killed_at - 5 < json.loads(kept.read_text())[0][0] <= killed_at
    batch({"2": "on"}, inrush=1)
    assert time.time() >= json.loads(kept.read_text())[0][0] >= killed_at


def test_a_second_begins_when_a_slow_pdu_has_obeyed(tmp_path, monkeypatch):
    """Lost: the breaker, behind a PDU that takes seconds to switch an outlet on, or that hangs up over it."""
    clock = [time.time()]
    monkeypatch.setattr(inrush, "time", SimpleNamespace(time=lambda: clock[0]))

    def slow(outlets):
        clock[0] += 2.0
        raise Lost("it hung up", "pdu-i", "see")

    pace = inrush.Inrush(str(tmp_path), "pdu-i", dict(inrush=1), lambda text: None)
    with pytest.raises(Lost):
        pace.switch_on(["1"], slow, Deadline(60))
    with pytest.raises(inrush.NoTurn):
        pace.switch_on(["2"], dict.fromkeys, Deadline(0.2))


def test_a_run_folder_that_becomes_full_in_between(batch, orders, monkeypatch):
    """Lost: the breaker, by a note that is older than what this session switched."""
    write = whole_file.write_whole
    written = []

    def full(path, *given, **more):
        written.append(path)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(path, *given, **more)

    monkeypatch.setattr(whole_file, "write_whole", full)
    batch(dict.fromkeys("12345", "on"))
    assert most_within_a_second(orders) == 2


def test_each_bank_keeps_its_own_pace(batch, orders):
    """Lost: the time of a rack whose PDU has a breaker for each eight outlets; or one of these breakers."""
    batch(dict.fromkeys("12345678", "on"), banks=["1-3", "4, 6"])
    assert [outlets for _at, outlets, _state in orders] == [["1", "2", "4", "5", "6", "7"], ["3", "8"]]
    begun, second = (at for at, _outlets, _state in orders)
    assert second - begun >= 1.0
    # the next session knows which bank it was
    path = batch.path
    path.write_text(json.dumps({"outlets": dict.fromkeys("12345678", "off")}))
    batch({"3": "on", "4": "on"}, banks=["1-3", "4, 6"], inrush=1)
    assert [outlets for _at, outlets, _state in orders[2:]] == [["4"], ["3"]]


def test_banks_that_are_none(batch):
    """Lost: a breaker, by a bank that nobody meant."""
    with pytest.raises(BadInput, match="pdu-i: its banks are none: give a list of its banks' outlets, such as 1-8"):
        batch({"1": "on"}, banks=["1-4", "4-8"])
