# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is still served of a board that is gone. Whole nodes are in verbs/test_gone_boards.py.

Tests boards/power/gone_boards.py, roots/board_parts.py.
"""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import gone_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import board_parts


def test_the_exports_of_one_root_are_found_where_boots_write_them(monkeypatch):
    """Lost: who has the files of a board that is gone, so that they are given to nobody else meanwhile."""
    asked = []

    def exporter(kind, folder):
        asked.append((kind, folder))
        return SimpleNamespace(show=lambda: {"a": mine, "b": other})

    monkeypatch.setattr(board_parts, "exporter", exporter)
    config = SimpleNamespace(exports="kernel", state_folder="/state")
    proxy = SimpleNamespace(config=config, folder=lambda name: f"/run/{name}")
    mine, other = (SimpleNamespace(path=board_parts.root_of_board(proxy, board).path) for board in (1, 2))
    assert gone_boards.exports_of(proxy, 1) == [mine]
    assert asked == [("kernel", "/run/exports")]
