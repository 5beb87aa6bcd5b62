# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One board of a reconcile. Whole ones are in verbs/test_reconcile.py."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import adoption
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import looks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


def test_a_board_that_was_not_looked_at_has_an_answer_too():
    """Lost: what reconcile found of all boards, to a traceback for one that a verb works on."""
    work = SimpleNamespace(board=SimpleNamespace(id=0, name="board0"), instance=None, is_read=False, over=True)
    work.error, work.changed, work.change = "busy with start of jackie", False, SimpleNamespace(check=False)
    look = looks.Look(work)
    look.begin()
    assert {name: look.result[name] for name in ("power", "ssh", "state", "recorded", "changed")} == dict(
        power=None, ssh=None, state=None, recorded=None, changed=False
    )
    assert look.result["found"] == [dict(found="not looked at: busy with start of jackie", done=None)]
    assert (look.settled, look.nobodys, look.kept) == (False, False, None)


def test_a_record_that_cannot_be_taken_over_is_said_and_its_board_is_left(monkeypatch):
    """Lost: why a tenant is not known any more; or its board, which would be looked at as nobody's."""

    def full(*_given):
        raise HeteroError("no space is left", "/state/claims/board0.json", "free some")

    monkeypatch.setattr(adoption, "decide", full)
    store = SimpleNamespace(transaction=nullcontext)
    work = SimpleNamespace(lines=[], changed=False, record=None, contradiction=None, change=Change())
    work.proxy = SimpleNamespace(store=store)
    look = looks.Look(work)
    reconciliation._adopt(None, look, SimpleNamespace(claim=SimpleNamespace(instance="jackie")), ())
    why = "could not be adopted for jackie: /state/claims/board0.json: no space is left: free some"
    assert look.found == [dict(found=why, done=None)]
    assert look.settled
