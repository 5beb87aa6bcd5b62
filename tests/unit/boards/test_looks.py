# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One board of a reconcile. Whole ones are in verbs/test_reconcile.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils.boards import adopting, looks, reconciling
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError


def test_a_record_that_cannot_be_taken_over_is_said_and_its_board_is_left(monkeypatch):
    """Lost: why a tenant is not known any more; or its board, which would be looked at as nobody's."""

    def full(*_given):
        raise HeteroError("no space is left", "/state/claims/board0.json", "free some")

    monkeypatch.setattr(adopting, "decide", full)
    look = looks.Look(SimpleNamespace())
    reconciling._adopt(None, look, ())
    assert look.found == [dict(found="/state/claims/board0.json: no space is left: free some", done=None)]
    assert look.settled
