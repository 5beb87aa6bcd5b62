# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks that count in one boot of the machine. If these fail, what was seen before a reboot decides what is cut after
it, or a mark that a person damaged stops all verbs.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import boot_marks


@pytest.fixture
def proxy(tmp_path):
    return SimpleNamespace(config=SimpleNamespace(run_folder=str(tmp_path)))


def test_a_mark_is_kept_for_its_board_and_replaced(proxy):
    """Lost: what was seen of the board."""
    boot_marks.keep(proxy, "cuts", "board1", {"outlet": 3})
    boot_marks.keep(proxy, "cuts", "board2", {"outlet": 4})
    boot_marks.keep(proxy, "cuts", "board1", {"outlet": 5})
    assert boot_marks.kept(proxy, "cuts", "board1")["outlet"] == 5
    assert boot_marks.kept(proxy, "cuts", "board2")["outlet"] == 4
    assert boot_marks.kept(proxy, "other", "board1") is None


def test_a_mark_of_another_boot_says_nothing(proxy, monkeypatch):
    """Lost: a board, which is held for off by what was so before the machine was restarted."""
    boot_marks.keep(proxy, "cuts", "board1", {"outlet": 3})
    monkeypatch.setattr(boot_marks, "boot_id", lambda: "another")
    assert boot_marks.kept(proxy, "cuts", "board1") is None


def test_a_mark_that_cannot_be_read_or_written_is_none(proxy, tmp_path):
    """Lost: each verb, to a file that is only a hint."""
    boot_marks.keep(proxy, "cuts", "board1", {"outlet": 3})
    (tmp_path / "cuts" / "board1.json").write_text("[")
    assert boot_marks.kept(proxy, "cuts", "board1") is None
    (tmp_path / "full").write_text("a file in the folder's place")
    boot_marks.keep(proxy, "full", "board1", {"outlet": 3})
    assert boot_marks.kept(proxy, "full", "board1") is None
