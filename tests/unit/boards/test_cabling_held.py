# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cabling check of a board whose wiring names an outlet that another's board had last."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.boards import cabling
from ansible_collections.hetero.compute.plugins.module_utils.boards.cabling import Cabling, Options
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError

HELD = "its wiring names pdu-c outlet 5, by which jackie on board1 had power last"


@pytest.fixture
def check(monkeypatch):
    """A check of one free board, with what it does to outlets."""
    monkeypatch.setattr(cabling, "left_by", lambda *given: None)
    work = SimpleNamespace(
        board=SimpleNamespace(id=0, name="board0"),
        pdu="pdu-c",
        outlet="5",
        outlet_name="pdu-c outlet 5",
        record=SimpleNamespace(claim=None, state="power off"),
        say=lambda *given: None,
    )
    one = Cabling(SimpleNamespace(boards={}, wiring=lambda board: {}, config={}), [work], Options(20.0))
    one.did = []
    monkeypatch.setattr(one, "_status", lambda work: one.did.append("asked") or "off")
    monkeypatch.setattr(one, "_look", lambda finding: one.did.append("switched"))
    return one


@pytest.mark.parametrize("held", [HELD, None])
def test_an_outlet_that_was_anothers_last_is_not_switched(check, monkeypatch, held):
    """Lost: a tenant's peace: the board that was stopped comes up by a check of the one beside it."""
    monkeypatch.setattr(cabling, "Feeds", lambda proxy: SimpleNamespace(held_by=lambda board: held))
    (finding,) = check.findings
    check._test(finding)
    assert check.did == ([] if held else ["asked", "switched"])
    if held:
        assert (finding.verdict, finding.text) == ("skipped", f"not tested: {HELD}")


def test_records_that_cannot_be_looked_at_keep_an_outlet_as_it_is(check, monkeypatch):
    """Lost: the same, where nobody knows whose the outlet is."""

    def unread(proxy):
        raise HeteroError("cannot be read", "claims", "mend it")

    monkeypatch.setattr(cabling, "Feeds", unread)
    (finding,) = check.findings
    check._test(finding)
    assert (finding.verdict, finding.text) == ("skipped", "not tested: claims: cannot be read: mend it")
    assert (check.did, check._down) == ([], {})
