# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work on boards of a real store."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_work import BoardWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

KEY = "ssh-ed25519 AAAA"


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Make the work of a board of a real store; board 1 is jackie's."""
    monkeypatch.setattr(board_work, "refuse_anothers", lambda proxy, board, claim: None)
    monkeypatch.setattr(board_work, "refuse_changed", lambda proxy, board: None)
    with Store(str(tmp_path / "state.db"), "test") as store:
        store.claim("jackie", ["jackie"], ClaimTerms("jo", {"name": "x"}, "debian", KEY), [1])
        proxy = SimpleNamespace(
            store=store,
            actor="test",
            config=ProxyConfig(run_folder=str(tmp_path / "run")),
            outlet=lambda board: ("pdu-a", "5"),
        )

        def make(number=1, check=False, read=True, **wanted):
            board = SimpleNamespace(id=number, name=f"board{number}", ip=f"10.0.2.{number + 1}")
            one = BoardWork(proxy, board, Change(check), **wanted)
            if read:
                one.read()
            return one

        yield make
