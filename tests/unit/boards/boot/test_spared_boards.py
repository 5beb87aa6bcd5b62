# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that a last look spared, and another of the same order whose session is lost.

If these fail, a board is cut after its user was told that it is left as it is, or that it runs.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, starts, stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as Pdu
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import Session
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_late_cuts import (
    LONG,
    Running,
    another_has_the_pdu,
    reads,
    until,
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    monkeypatch.setattr(presence, "strain", lambda: 1.0)
    monkeypatch.setattr(starts, "DRY_PATIENCE", 0.3)
    monkeypatch.setattr(late_cuts, "FRESH", 1.0)
    monkeypatch.setattr(stops, "FRESH", 1.0)


class Both(Running):
    def _run(self, verb, options):
        self.result = self.site.run(verb, 0, 1, 2, **options)


def lost_once(monkeypatch, carried_out=False, least=1):
    """The PDU hangs up over the first order "off"; `carried_out` tells whether it was done by then."""
    switch, orders, lost = Pdu.switch, [], threading.Event()
    many = []
    asked = Session.switch
    monkeypatch.setattr(
        Session, "switch", lambda self, outlets, state: many.append(outlets) or asked(self, outlets, state)
    )

    def orders_are_many():
        return any(len(asked) > 1 for asked in many)

    def switches(self, outlets, state):
        orders.append((state, list(outlets)))
        if state == "off" and not lost.is_set() and (least == 1 or orders_are_many()):
            if carried_out:
                switch(self, outlets, state)
            lost.set()
            time.sleep(1.5)
            raise Lost("it hung up", self.name, "look at it")
        return switch(self, outlets, state)

    monkeypatch.setattr(Pdu, "switch", switches)
    return orders, lost


def test_a_board_that_was_left_is_not_cut_by_the_repeated_order_for_another(site, monkeypatch):
    """Lost: the power of a board on which another key answers, after it was said to be left as it is."""
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)
    site.config["boards"]["2"]["pdu"] = "pdu-a"
    site.write()
    site.claim(0, 1, 2)
    site.run("start", 0, 1, 2)
    orders, _lost = lost_once(monkeypatch, least=2)
    told, looked, batches, real = threading.Event(), [], [], pdu_line._still

    def still(looks, outlets):
        if len(outlets) > 1:
            batches.append(sorted(outlets))
        return real(looks, outlets)

    def is_others(work):
        looked.append(work.outlet)
        assert told.wait(LONG)
        # at the last look; when the order is repeated, it does not answer in time
        return len(batches) == 1 and work.outlet == batches[0][0]

    monkeypatch.setattr(pdu_line, "_still", still)
    monkeypatch.setattr(stops, "is_others", is_others)
    read = reads(monkeypatch)
    verb = Both(site, "stop", keep=True)
    until(lambda: {"5", "7"} <= set(looked) and "pdu-a" in read, verb)
    with another_has_the_pdu(site):
        told.set()
        until(lambda: all(site.events(number, ("switch",))[1:] for number in (0, 2)), verb)  # the cuts are asked for
    lines = verb.lines
    assert batches, (orders, lines)
    left = [5, 6, 7].index(int(batches[0][0]))
    assert any("left as it is" in line for line in lines), (lines, orders)
    assert site.power(left) == "on", (lines, orders, batches, site.record(left).state, site.record(left).power)


def test_unit_session_repeats_only_what_was_not_spared(site, monkeypatch):
    """The same at the session: an outlet that was spared is not asked again."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import (
        session,
        set_outlets,
    )

    site.claim(0, 1)
    site.run("start", 0, 1)
    orders, lost = lost_once(monkeypatch)
    with site.proxy() as proxy:
        settings, secrets = proxy.pdu("pdu-a")
        deadline = Deadline(30)
        with session("pdu-a", settings, secrets, deadline, proxy.config.run_folder) as pdu:
            one, other = [name for name, state in pdu.status().items() if state == "on"][:2]
            seen = []

            def still(outlets):
                seen.append(list(outlets))
                return [outlet for outlet in outlets if outlet != one or len(seen) > 1]

            pdu.still = still
            results = set_outlets(pdu, {one: "off", other: "off"}, deadline)
            assert (pdu.status()[one], list(results)) == ("on", [other]), (seen, orders, results)


def test_what_was_cut_over_a_lost_session_is_not_said_to_be_left_on(site, monkeypatch):
    """Lost: the truth, and a board: it was cut by an order over which the PDU hung up, and is said to be left on."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
    from ansible_collections.hetero.compute.tests.unit.boards.boot.test_late_cuts import left_silent

    orders, lost = lost_once(monkeypatch, carried_out=True)
    left_silent(site)
    real = Fake.has_root
    # it mounted its root in the seconds before the cut, and the kernel has its connection for minutes after it
    monkeypatch.setattr(Fake, "has_root", lambda self, board: lost.is_set() or real(self, board))
    verb = Running(site, "start", timeout=1)
    lines = verb.lines
    # it is off: whoever says that it is left as it is, with its outlet on, says what is not so
    assert site.power(0) == "on", (lines, orders, site.record(0).state, site.record(0).power)
