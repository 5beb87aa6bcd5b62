# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a claim's record is written. Whole nodes that lost some are in verbs/test_lost_records.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store


@pytest.mark.parametrize("change", ["lease", "state", "outlet"])
def test_a_lost_record_is_not_written_by_the_way(tmp_path, change):
    """Lost: that it was lost. It may have known of a longer lease, or of another outlet, than the database does."""
    records = tmp_path / "claims"
    with Store(str(tmp_path / "state.db"), "test", records=str(records)) as store:
        store.claim("jackie", ["jackie"], ClaimTerms("jackie", {"name": "x"}, "debian", "ssh-ed25519 AAAA x"), [0])
        store.put("jackie", image_hash="ab" * 32)
        (records / "board0.json").unlink()
        if change == "lease":
            store.put("jackie", expires=2e9)
        elif change == "state":
            store.move(0, "booting")
        else:
            store.feed(0, Fed("pdu-a", "1"))
        assert [claim.instance for claim in store.lost()] == ["jackie"]


@pytest.mark.parametrize("damage", ["lost", "unreadable"])
def test_a_lost_record_keeps_no_other_from_being_written(tmp_path, damage):
    """Lost: the longer lease of one instance, in its record, where that of another one of the request is lost."""
    records, names = tmp_path / "claims", ["lab-1", "lab-2", "lab-3"]
    with Store(str(tmp_path / "state.db"), "test", records=str(records)) as store:
        store.claim("lab", names, ClaimTerms("jackie", {"name": "x"}, "debian", "ssh-ed25519 AAAA x"), [0, 1, 2])
        for name in names:
            store.put(name, image_hash="ab" * 32)
        if damage == "lost":
            (records / "board1.json").unlink()
        else:
            (records / "board1.json").write_text("{")
        with store.transaction():
            for name in names:
                store.put(name, expires=2e9)
        assert [store.kept(board).claim.expires for board in (0, 2)] == [2e9, 2e9]
