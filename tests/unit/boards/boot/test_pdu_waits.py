# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs on boards whose PDU others have, or which hangs: whoever follows reads what is waited for, within two seconds.

Without it, a play says nothing for more than a minute, and people end it, or look for the fault at the board.
"""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.job_watch import SHOWN
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.wait_notes import QUIET

#: What a busy machine may take.
LONG = 60.0


def waits(site, number=0):
    """What a board's verb has told of its waits so far."""
    assert "wait" in SHOWN, "the play would not show it"
    return [event.text for event in site.events(number, ("wait",))]


def until_told(site, thread):
    """The first wait that the verb in this thread tells."""
    end = time.monotonic() + LONG
    while not waits(site):
        assert thread.is_alive(), "it was over without a word"
        assert time.monotonic() < end, "it says nothing"
        time.sleep(0.02)
    return waits(site)[0]


@pytest.fixture
def verb(site):
    """A function that runs a verb in a thread, which has ended when the test has."""
    threads = []

    def begin(name, **options):
        thread = threading.Thread(target=site.run, args=(name, 0), kwargs=options)
        thread.start()
        threads.append(thread)
        return thread

    yield begin
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def other(site):
    """Another verb that has the PDU."""
    return lock(site.config["run_folder"], "pdu-pdu-a", "power", "jo", Deadline(LONG))


@pytest.mark.parametrize("name", ["start", "stop", "reboot"])
def test_a_pdu_that_another_verb_has(site, verb, name):
    site.claim(0)
    if name != "start":
        site.run("start", 0)
    with other(site):
        said = until_told(site, verb(name))
    assert said.startswith("pdu-a: held by power (jo, pid "), said


def test_a_pdu_that_hangs(site, verb, monkeypatch):
    monkeypatch.setattr(pdu_loop, "PDU", 2 * QUIET + 2)
    site.claim(0)
    site.pdu("pdu-a", hang=True)
    begun = time.monotonic()
    said = until_told(site, verb("start"))
    assert said == f"pdu-a: the login takes longer; it is waited for until {2 * QUIET + 2:g} s are over"
    assert time.monotonic() - begun < LONG


def test_an_outlet_that_does_not_follow(site, verb):
    """The window of a relay is 10 s."""
    site.claim(0)
    site.pdu("pdu-a", stuck=["5"])
    assert until_told(site, verb("start")) == "pdu-a: not yet read as on: outlet 5"


def test_a_pdu_that_is_there_is_no_wait(site):
    """Lost: what people read, to lines about waits that are none."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    assert waits(site) == waits(site, 1) == []


def test_a_dry_run_writes_nothing_of_its_waits(site, verb):
    site.claim(0)
    with other(site):
        thread = verb("start", check=True)
        thread.join(2 * QUIET)
        assert thread.is_alive(), "it did not wait"
        assert waits(site) == []
