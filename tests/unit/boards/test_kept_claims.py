# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a claim's record is written. Whole nodes that lost some are in verbs/test_lost_records.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.boards.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils.boards.store import Store


@pytest.mark.parametrize("change", ["lease", "state", "outlet"])
def test_a_lost_record_is_not_written_by_the_way(tmp_path, change):
    """Lost: that it was lost. It may have known of a longer lease, or of another outlet, than the database does."""
    records = tmp_path / "claims"
    with Store(str(tmp_path / "state.db"), "test", records=str(records)) as store:
        store.claim("jackie", ["jackie"], "jackie", {"name": "x"}, "debian", "ssh-ed25519 AAAA x", [0])
        store.put("jackie", image_hash="ab" * 32)
        (records / "board0.json").unlink()
        if change == "lease":
            store.put("jackie", expires=2e9)
        elif change == "state":
            store.move(0, "booting")
        else:
            store.feed(0, Fed("pdu-a", "1"))
        assert [claim.instance for claim in store.lost()] == ["jackie"]
