# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU of two names keeps one pace: also where sessions by both are open at once, each with the lock of its own name
only, and where they spell its host in two ways. If these fail, the breaker of a rack trips, and with it all that runs
there.
"""

from __future__ import annotations

import json
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake


@pytest.fixture
def orders(monkeypatch):
    """When outlets were ordered on, once for each of them, from a card that takes a while for an order."""
    told, lock, switch = [], threading.Lock(), Fake.switch

    def slow(self, outlets, state):
        told.extend([time.monotonic()] * len(outlets))
        time.sleep(0.2)
        with lock:
            return switch(self, outlets, state)

    monkeypatch.setattr(Fake, "switch", slow)
    return told


@pytest.fixture
def session(tmp_path):
    """A function that opens a session with the PDU, by one of its names and spellings of its host."""
    path = tmp_path / "pdu.json"
    path.write_text(json.dumps({"outlets": {str(number): "off" for number in range(1, 11)}}))

    def opened(name, wanted, ready=None, **settings):
        settings, deadline = dict(settings, driver="fake", path=str(path), inrush=1), Deadline(60.0)
        with power.session(name, settings, {}, deadline, str(tmp_path / "run")) as opened:
            if ready:
                ready.wait()
            power.set_outlets(opened, wanted, deadline)

    return opened


def test_two_names_at_once_keep_one_pace(session, orders):
    """One request for boards of both names: a thread for each name."""
    ready = threading.Barrier(2)
    threads = [
        threading.Thread(target=session, args=(name, dict.fromkeys(outlets, "on"), ready))
        for name, outlets in (("pdu-i", "123"), ("pdu-j", "456"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert len(orders) == 6
    assert max(sum(begin <= at < begin + 0.99 for at in orders) for begin in orders) == 1, orders


@pytest.mark.parametrize(
    ("one", "other"),
    [("127.0.0.1", "localhost"), ("PDU-A.lab", "pdu-a.lab."), ("10.0.2.100", "::ffff:10.0.2.100")],
)
def test_two_spellings_keep_one_pace(session, orders, one, other):
    """One session after the other, each with one outlet."""
    pdus = {"pdu-i": dict(host=one), "pdu-j": dict(host=other)}
    assert set(pdu_names.devices(pdus).values()) == {"pdu-i"}, "they are one device"
    for name, outlet in zip(pdus, "12"):
        session(name, {outlet: "on"}, **pdus[name])
    assert orders[1] - orders[0] >= 0.99, orders


def test_two_devices_do_not_wait_for_each_other(session, orders):
    """Lost: time, where racks of two breakers are switched on."""
    for name, host, outlet in (("pdu-i", "10.0.2.100", "1"), ("pdu-j", "10.0.2.101", "2")):
        session(name, {outlet: "on"}, host=host)
    assert orders[1] - orders[0] < 0.99, orders
