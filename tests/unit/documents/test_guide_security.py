# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every promise of the security guide names the test that proves it, and that test is there."""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide

TEST = re.compile(r"``(tests/[\w/]+\.py)(?:::(\w+))?``")
HOLDS, ENDS = "What holds, and which test proves it", "What your network must give"


def promises():
    """The points of the list of what holds."""
    text = guide("security").partition(f"{HOLDS}\n")[2].partition(f"{ENDS}\n")[0]
    return re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)


def test_each_promise_names_a_test():
    """Lost: a promise that nobody has tried to break."""
    assert len(promises()) > 20
    assert [promise for promise in promises() if not TEST.search(promise)] == []


def test_each_named_test_is_there():
    """Lost: a promise whose proof was renamed or removed."""
    named = TEST.findall(guide("security"))
    assert named
    for path, function in named:
        assert (ROOT / path).is_file(), path
        if function:
            assert re.search(rf"^def {function}\(", (ROOT / path).read_text(), re.M), f"{path}::{function}"


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/attack/test_*.py")), ids=lambda path: path.stem)
def test_each_attack_is_told(path):
    """Lost: an attack that is tried in each run, and of which no reader of the guide learns."""
    assert str(path.relative_to(ROOT)) in {name for name, _function in TEST.findall(guide("security"))}
