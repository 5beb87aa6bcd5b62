# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the root of an instance that moves lies. If these fail, a copy is taken for the root, or a root is laid over
another one. Whole moves are in tests/unit/verbs/test_migrated.py.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import moved_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.made_json import token_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Made

CLAIM = SimpleNamespace(instance="jackie", created=1700000000.25)
BEFORE = SimpleNamespace(instance="jackie", created=1600000000.0)


@pytest.fixture
def roots(tmp_path):
    """roots(board, claim): lays a root that says that it was made for a claim; the node, for the functions."""

    def lay(number, claim):
        folder = tmp_path / "board-roots" / f"fs_{number}"
        folder.mkdir(parents=True)
        (folder / "made.json").write_text(json.dumps(asdict(Made(token_of(claim), "ab" * 32))))
        return folder

    lay.node = SimpleNamespace(config=SimpleNamespace(state_folder=str(tmp_path)))
    return lay


def test_a_root_in_another_boards_place_is_found(roots):
    """Lost: what the tenant has, when a move was killed between the claim and the root."""
    roots(0, CLAIM)
    roots(2, BEFORE)
    assert moved_root.lies_at(roots.node, CLAIM, 1) == 0


def test_beside_the_root_in_its_place_another_is_a_copy(roots):
    """Lost: what was written since the copy was made."""
    roots(0, CLAIM)
    roots(1, CLAIM)
    assert moved_root.lies_at(roots.node, CLAIM, 1) is None


def test_a_root_of_an_earlier_claim_of_that_name_is_none_of_it(roots):
    """Lost: the way to whom that root was."""
    roots(0, BEFORE)
    assert moved_root.lies_at(roots.node, CLAIM, 1) is None


def test_it_is_laid_over_nothing(roots, monkeypatch):
    """Lost: whatever lies in the place of the new board, or the root, which a rename would put into it."""
    folder, there = roots(0, CLAIM), roots(1, BEFORE)
    monkeypatch.setattr(moved_root, "let_go", lambda proxy, board: None)
    monkeypatch.setattr(
        moved_root, "Place", lambda proxy, board: SimpleNamespace(root=SimpleNamespace(folder=str(folder)))
    )
    with pytest.raises(Refused, match="is there, where the root of jackie is to go") as refused:
        moved_root.bring(roots.node, CLAIM, SimpleNamespace(id=0), SimpleNamespace(id=1))
    assert refused.value.thing == str(there)
    assert (folder / "made.json").exists()
    for one in there.iterdir():
        one.unlink()
    there.rmdir()
    moved_root.bring(roots.node, CLAIM, SimpleNamespace(id=0), SimpleNamespace(id=1))
    assert (there / "made.json").exists()
    assert not folder.exists()
