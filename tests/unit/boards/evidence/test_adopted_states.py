# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which claims may be adopted, and what is recorded of their boards. Whole reconciles are in verbs/test_adopting.py.

Tests boards/evidence/adoption.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import adoption
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import OTHER_KEY, OWN_KEY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim, Kept
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store


def look(ssh=None, power="off"):
    return SimpleNamespace(ssh=ssh, power=power, work=SimpleNamespace(board=SimpleNamespace(ip="10.0.2.1")))


@pytest.mark.parametrize(
    ("kept", "seen", "state"),
    [
        (("error", "it smells"), look(OWN_KEY, "on"), ("error", "it smells")),
        (("maintenance", "its fan"), look(), ("maintenance", "its fan")),
        (("power off", "stopped"), look(OWN_KEY, "on"), ("running", "")),
        (("shutting down", "cleaned"), look(None, "on"), ("running", "")),
        (("power off", "stopped"), look(OWN_KEY, "off"), ("running", "")),
        (("shutting down", "cleaned"), look(), ("shutting down", "cleaned")),
        (("power off", "stopped"), look(), ("power off", "stopped")),
        (("running", "fine"), look(), ("power off", "found off")),
        (("booting", ""), look(), ("power off", "found off")),
    ],
)
def test_the_state_of_what_is_adopted(kept, seen, state):
    """An instance that was on its way off would come up again, or one that an operator keeps off."""
    assert adoption._state(seen, SimpleNamespace(state=kept[0], note=kept[1])) == state


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (look(OWN_KEY, "on"), None),
        (look(OWN_KEY, "off"), None),
        (look(OTHER_KEY, "on"), "another host key answers at 10.0.2.1"),
        (look(OTHER_KEY, "off"), "another host key answers at 10.0.2.1"),
        (look(None, "on"), "its outlet is on, and it does not show its key"),
        (look(None, "off"), None),
        (look("silent", "off"), "its outlet is off, and something answers at 10.0.2.1"),
    ],
)
def test_what_contradicts_a_claim(seen, why):
    """A board that another has would be called jackie's, or hers be left to whoever asks next."""
    assert adoption._contradicted(seen) == why


@pytest.mark.parametrize(("board", "why"), [(1, "jackie: belongs to eve: choose another name"), (0, None)])
def test_a_name_that_is_anothers_by_now(tmp_path, board, why):
    """Two owners would have one name, and terminate_instance of the one end what the other has; what the database says
    of the very board is older than its record, and speaks against nobody."""
    kept = Kept(Claim(0, "jackie", "jackie", "jackie", {}, "debian", "ssh-ed25519 AAAA x", 1.0), "power off")
    with Store(str(tmp_path / "state.db"), "test") as store:
        store.claim("jackie", ["jackie-1"], ClaimTerms("eve", {"name": "x"}, "debian", "ssh-ed25519 AAAA y"), [board])
        work = SimpleNamespace(board=SimpleNamespace(id=0), claim=store.record(0).claim)
        assert adoption._objection(SimpleNamespace(store=store), work, kept) == why
