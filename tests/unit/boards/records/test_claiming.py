# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module board_claim claims and returns. The module itself is in store/test_board_claim.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


def test_who_gives_back_what_nobody_has_gets_each_value_all_the_same(tmp_path):
    """Lost: a play that ends twice what it made, at a value that the module's page says is always there."""
    store = SimpleNamespace(claims=list, kept_anywhere=list, kept_boards=list)
    nobodys = SimpleNamespace(store=store, boards={}, config=ProxyConfig(state_folder=str(tmp_path)))
    result = board_releases.absent(nobodys, Instances("jackie"), Change(), Deadline(60))
    assert result == dict(boards=[], lines=[], errors={}, rejected={}, rejected_lines=[])


def test_an_instance_that_bears_anothers_request_is_refused(tmp_path):
    """Lost: verbs take either, so that a request of ann's would be bob's in part, and nobody could end it."""
    anns, bobs = (ClaimTerms(owner, {"name": "x"}, "debian", "ssh-ed25519 AAAA x") for owner in ("ann", "bob"))
    with Store(str(tmp_path / "state.db"), "test") as store:
        store.claim("lab", ["lab-1"], anns, [0, 1])
        with pytest.raises(Refused, match="lab: belongs to ann: choose another name"):
            store.claim("lab", ["lab"], bobs, [0, 1])
