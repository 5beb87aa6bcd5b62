# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots in each other's places where no made.json is left, say after only the large files were put back from a
backup. If this fails, a root goes with another's end or lease: database and record say which claim its UUID is that of.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import folder, numbers, swap, two

__all__ = ["two"]

VERBS = {
    "terminate": lambda site: site.terminate("jackie"),
    "rebuild": lambda site: [
        site.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)
    ],
    "reap": lambda site: site.expire("jackie") or site.reap(),
}


@pytest.mark.parametrize("what", ["missing", "garbage"])
@pytest.mark.parametrize("verb", VERBS)
def test_anothers_root_stays_by_the_claims_that_are_known(two, verb, what):
    """Lost: bob's only root, by the end of jackie's, by her lease, or by the rebuild that an error names for her."""
    swap(two)
    for board in (0, 1):
        made = folder(two, board) / "made.json"
        made.unlink() if what == "missing" else made.write_text("{")
    bobs = (folder(two, 0) / "root.ext4").stat().st_ino
    results = VERBS[verb](two)
    assert bobs in numbers(two), results


def test_a_root_in_its_own_place_goes_with_its_instance(two):
    """If this fails, nothing ends an instance whose made.json is lost."""
    (folder(two, 0) / "made.json").unlink()
    results = two.terminate("jackie")
    assert not any(result.get("failed") for result in results), results
    assert not folder(two, 0).exists()
