# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A last look that fails. If this fails, boards are out of use, or said to boot, that nobody switched."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import reboots, stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_late_cuts import (
    LONG,
    Running,
    another_has_the_pdu,
    reads,
    until,
)
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_spared_boards import Both, _quick

__all__ = ["_quick"]


@pytest.mark.parametrize(
    "error",
    [HeteroError("has been locked by another process for 10 s", "/x/state.db"), OSError(24, "Too many open files")],
    ids=str,
)
def test_a_look_that_fails_puts_no_other_board_out_of_use(site, monkeypatch, error):
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)
    site.config["boards"]["2"]["pdu"] = "pdu-a"
    site.write()
    site.claim(0, 1, 2)
    site.run("start", 0, 1, 2)
    told, looked, batches, real = threading.Event(), [], [], pdu_line._still

    def still(looks, outlets):
        if len(outlets) > 1:
            batches.append(sorted(outlets))
        return real(looks, outlets)

    def is_others(work):
        looked.append(work.outlet)
        assert told.wait(LONG)
        if batches and work.outlet == batches[0][0]:
            raise error
        return False

    monkeypatch.setattr(pdu_line, "_still", still)
    monkeypatch.setattr(stops, "is_others", is_others)
    read = reads(monkeypatch)
    verb = Both(site, "stop", keep=True)
    until(lambda: {"5", "7"} <= set(looked) and "pdu-a" in read, verb)
    with another_has_the_pdu(site):
        told.set()
        until(lambda: all(site.events(number, ("switch",))[1:] for number in (0, 2)), verb)  # the cuts are asked for
    verb.thread.join(LONG)
    assert not verb.thread.is_alive()
    got = {n: (site.power(n), site.record(n).state, site.record(n).note) for n in (0, 1, 2)}
    assert verb.result, got
    assert "error" not in [state for _power, state, _note in got.values()], (got, verb.lines, batches)


def test_a_board_that_was_to_be_cut_and_runs_on_is_not_recorded_as_booting(site, monkeypatch):
    """Lost: the truth: a board that runs as before is said to boot, and what was left as it is to be changed."""
    monkeypatch.setattr(pdu_line, "IDLE", 0.1)
    site.claim(0)
    site.run("start", 0)
    told, looked = threading.Event(), threading.Event()

    def is_others(*_given):
        looked.set()
        return not told.wait(LONG)

    def shown(work):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(reboots, "is_others", is_others)
    monkeypatch.setattr(presence, "shown", shown)
    read = reads(monkeypatch)
    verb = Running(site, "reboot", soft_timeout=1)
    until(lambda: looked.is_set() and read, verb)
    with another_has_the_pdu(site):
        told.set()
        verb.until("switch", "is to be switched off, and on again")
    assert verb.lines
    (board,) = verb.result["boards"]
    assert "could not be looked at before its power was to be cut" in board["error"]
    assert (site.power(0), site.record(0).state, verb.result["changed"], verb.result["diff"]) == (
        "on", "running", False, [],
    )  # fmt: skip
