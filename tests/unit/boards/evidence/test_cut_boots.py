# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reboot whose process was killed (kill -9) while the outlet was off: it is seen, and finished by whoever comes next.

The process is a child of the test that kills itself.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_loop import BootLoop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import cut_boots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_line import PduLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation, tenants_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import info
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock


def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)


def killed(site, where, number=0, owner=BootLoop):
    """A reboot by power that is killed when it comes to a method."""
    child = os.fork()
    if child == 0:
        setattr(owner, where, die)
        site.run("reboot", number, how="hard")
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.fixture
def running(site, monkeypatch):
    """Board 0 runs; nothing of its root has to be put back."""
    monkeypatch.setattr(tenants_boards, "put_back", lambda *given: [])
    site.claim(0)
    assert not site.run("start", 0)["failed"]
    return site


def reconciled(site, check=False):
    with site.proxy() as proxy:
        return reconciliation.reconcile(proxy, [0], Change(check), 20)["boards"][0]


def note_of(site):
    with site.proxy() as proxy:
        return info.information(proxy, [0])["boards"][0]["note"]


WHERE = pytest.mark.parametrize("where", ["_prove_cut", "_on"])


@WHERE
def test_reconcile_switches_it_on_again(running, where):
    """Lost: a tenant's board that ran and was only to be rebooted, dark until somebody finds out."""
    killed(running, where)
    assert (running.power(0), running.record(0).state) == ("off", "booting")
    assert "its boot was cut off before its outlet was on again" in note_of(running)
    assert "hetero.compute.reconcile" in note_of(running)
    dry = reconciled(running, check=True)
    assert [found["done"] for found in dry["found"]] == ["would be switched on, as it was to be"]
    assert running.power(0) == "off"
    done = reconciled(running)
    assert [found["done"] for found in done["found"]] == ["switched on, as it was to be; it boots"]
    assert (running.power(0), running.record(0).state) == ("on", "booting")
    assert not note_of(running), "nothing is left to be told"
    assert not running.run("start", 0)["failed"], "which waits for it"
    assert running.record(0).state == "running"


@WHERE
@pytest.mark.parametrize("verb", ["start", "reboot"])
def test_the_next_verb_switches_it_on_again(running, where, verb):
    """Lost: the same, by the very verb that was cut off."""
    killed(running, where)
    assert not running.run(verb, 0)["failed"]
    assert (running.power(0), running.record(0).state) == ("on", "running")
    assert not note_of(running)


@pytest.mark.parametrize(("owner", "where", "state"), [(BootLoop, "_ask", "running"), (PduLine, "ask", "booting")])
def test_one_that_was_killed_before_the_off_runs_on(running, owner, where, state):
    """Lost: the power of a board that was never cut, before or after it was written down that it was to be."""
    killed(running, where, owner=owner)
    assert (running.power(0), running.record(0).state) == ("on", state)
    assert reconciled(running)["state"] == "running"
    assert not note_of(running)


def test_no_other_claim_gets_power_by_it(running):
    """Lost: a board that its new tenant has not started, on by the word of the one before."""
    killed(running, "_prove_cut")
    with running.proxy() as proxy:
        record = proxy.store.record(0)
        assert cut_boots.is_cut_off(proxy, record)
        claim = record.claim.__class__(**dict(vars(record.claim), created=record.claim.created + 1e4))
        proxy.store.has_run = lambda claim: True
        assert not cut_boots.is_cut_off(proxy, record.__class__(**dict(vars(record), claim=claim)))
        claim = record.claim.__class__(**dict(vars(record.claim), instance="another"))
        assert not cut_boots.is_cut_off(proxy, record.__class__(**dict(vars(record), claim=claim)))
        assert not cut_boots.is_cut_off(proxy, record.__class__(**dict(vars(record), claim=None)))
        assert not cut_boots.is_cut_off(proxy, record.__class__(**dict(vars(record), state="power off")))
        proxy.store.has_run = lambda claim: False
        assert not cut_boots.is_cut_off(proxy, record), "its request goes on, or gives it back"


def test_a_reboot_that_goes_on_is_not_told_as_cut_off(running):
    """Lost: the trust in the note, by one on each board that is being rebooted."""
    killed(running, "_prove_cut")
    with running.proxy() as proxy:
        with lock(proxy.config.run_folder, "board0", "reboot", "test", Deadline(5)):
            assert cut_boots.told_of_boot(proxy, proxy.store.record(0)) is None
        assert cut_boots.told_of_boot(proxy, proxy.store.record(0))


def test_a_board_that_somebody_switched_off_by_hand_stays_off(running):
    """Lost: the hands of whoever works on a board whose outlet they switched off."""
    running.cut(0)
    assert reconciled(running)["state"] == "power off"
    assert running.power(0) == "off"


def test_only_the_off_of_a_cycle_is_followed_by_an_on(running):
    """Lost: a board that was given up, switched on again; or the reboot that was cut off, not known as one."""
    running.run("reboot", 0, how="hard")
    running.play(0, stall="nfs")
    running.run("reboot", 0, how="hard", timeout=1, retries=0)
    texts = [event.text[len("pdu-a outlet 5 is to be switched ") :] for event in running.events(0, ("switch",))]
    assert texts[:5] == ["on", "off, and on again", "on", "off, and on again", "on"]
    assert not any(text.endswith("again") for text in texts[5:])
