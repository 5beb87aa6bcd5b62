# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie runs by another outlet than the wiring's, which is off (or the PDU says so), and a hand gives her board
another address in the boards file. If this fails, reconcile exports her root, under her board at work, to that address,
which may be another tenant's board, and puts her boot files there.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, found, reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.mark.parametrize("verb", ["start", "reconcile"])
@pytest.mark.parametrize("address", ["10.0.2.9", "10.0.2.2"], ids=["nobody's", "the free board 1's"])
def test_her_root_stays_where_she_is(jackie, address, verb):
    """Lost: jackie's root, to whoever has that address; her board gets errors for each file."""
    jackie.pdu(board0="off")  # she has her power by another one
    assert "it runs jackie and shows its own key" in str(found(reconcile(jackie)))
    assert (jackie.record(0).state, jackie.outlets()["1"], lives(jackie, 0)) == ("running", "off", True)
    path = jackie.folder / "tilera_boards"
    rows = path.read_text().replace("10.0.2.2 ", "10.0.2.8 ") if address == "10.0.2.2" else path.read_text()
    path.write_text(rows.replace("10.0.2.1 ", f"{address} "))
    hangs(jackie, 0)  # nobody answers at that address
    before = jackie.what_is_there()
    result = reconcile(jackie) if verb == "reconcile" else boot(jackie)
    said = result.get("msg") or found(result)
    assert jackie.what_is_there() == before, said
    assert "boots from lies for 10.0.2.1" in str(said)


def test_so_it_does_where_she_answers_there(jackie):
    """The same at the first look that sees the outlet off."""
    jackie.pdu(board0="off")
    path = jackie.folder / "tilera_boards"
    path.write_text(path.read_text().replace("10.0.2.1 ", "10.0.2.9 "))
    jackie.wire(0, fake={"nfs": 0.0, "running": 0.0, "unproven": True})
    before = jackie.what_is_there()
    said = str(found(reconcile(jackie)))
    assert jackie.what_is_there() == before, said
    assert "boots from lies for 10.0.2.1" in said
