# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's root in another's place whose own made.json is lost, too. If this fails, it goes with the other's end."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import (
    folder,
    numbers,
    swap,
    two,
)

__all__ = ["two"]


@pytest.mark.parametrize("what", ["missing", "empty", "garbage"])
@pytest.mark.parametrize("verb", ["terminate", "rebuild"])
def test_anothers_root_does_not_go_where_made_json_is_lost(two, what, verb):
    """Lost: bob's only root, by the end of jackie's: its UUID is that of bob's claim, whose made.json names him."""
    swap(two)
    made = folder(two, 0) / "made.json"
    made.unlink() if what == "missing" else made.write_text("" if what == "empty" else "{")
    bobs = (folder(two, 0) / "root.ext4").stat().st_ino
    results = getattr(two, verb)("jackie")
    assert bobs in numbers(two), results
