# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is still served of a board that is gone. Whole nodes are in verbs/test_gone_boards.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import gone_boards


def test_the_exports_of_one_root_are_found_where_boots_write_them(monkeypatch):
    """Lost: who has the files of a board that is gone, so that they are given to nobody else meanwhile."""
    mine, other = (SimpleNamespace(path=gone_boards.Root("/state", board).path) for board in (1, 2))
    asked = []

    def exporter(kind, folder):
        asked.append((kind, folder))
        return SimpleNamespace(show=lambda: {"a": mine, "b": other})

    monkeypatch.setattr(gone_boards, "exporter", exporter)
    config = SimpleNamespace(exports="kernel", state_folder="/state")
    proxy = SimpleNamespace(config=config, folder=lambda name: f"/run/{name}")
    assert gone_boards.exports_of(proxy, 1) == [mine]
    assert asked == [("kernel", "/run/exports")]
