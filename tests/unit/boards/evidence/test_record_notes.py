# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status says of a record that is newer than the database. Whole nodes are in verbs/test_older_copies.py."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import record_notes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim

ROW = Claim(0, "jackie", "jackie", "ann", {}, "debian", "ssh-ed25519 A", 100.0, 200.0)


@pytest.mark.parametrize(
    ("changed", "stale", "said"),
    [
        ({}, False, None),
        ({"image": "other"}, True, None),
        ({"instance": "bob", "owner": "eve"}, False, "is bob's of eve by the record of its claim; "),
        ({"created": 101.0}, False, "is jackie's of ann by the record of its claim; "),
        ({"expires": None}, False, "the record of its claim has another lease: "),
        ({"image_hash": "x"}, False, "the record of its claim has another image hash; "),
        ({"image": "x", "boot_source": "disk"}, False, "the record of its claim has another image and boot source; "),
    ],
)
def test_what_is_newer_in_a_record(monkeypatch, changed, stale, said):
    """Lost: that the database is an old copy, and what an operator would lose by it."""
    monkeypatch.setattr(record_notes, "is_stale", lambda *given: stale)
    monkeypatch.setattr(record_notes, "contradiction_of", lambda *given: None)
    proxy = SimpleNamespace(store=SimpleNamespace(record=lambda board: SimpleNamespace(claim=ROW)))
    told = record_notes._told_of_newer(proxy, SimpleNamespace(id=0), replace(ROW, **changed))
    assert told == said or told.startswith(said)
    assert told is None or told.endswith(record_notes.NEWER)
