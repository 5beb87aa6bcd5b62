# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which unit tests `make test` runs on which day (tests/unit/conftest.py, tests/turns.py)."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.tests import turns
from ansible_collections.hetero.compute.tests.unit import conftest


class Item:
    """A test of a subject, as pytest has collected it."""

    def __init__(self, subject, *marks):
        self.path = Path(conftest.ROOT, "tests", "unit", subject, "test_it.py")
        self.marks = set(marks)

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    def add_marker(self, mark):
        self.marks.add(mark.name)


#: {kind of test: how many of a hundred are run each day}.
SHARES = {
    ("scheduling",): {100},
    ("scheduling", "dear"): {20},
    ("verbs",): {7, 8},
    ("verbs", "dear"): {7, 8},
    ("plays",): {5, 6},
    ("verbs", "long"): {0},
}


@pytest.mark.parametrize("kind", SHARES, ids=" ".join)
def test_each_unit_test_has_its_day_and_no_day_has_all(monkeypatch, kind):
    """Lost: a test that no day's run has; or a run of a quarter of an hour, to tests that are dear."""
    config = SimpleNamespace(option=SimpleNamespace(markexpr="not long and not another_day"))
    tried, shares = set(), set()
    for day in range(739942, 739942 + math.lcm(1, *([] if "long" in kind else [13, 17, 5]))):
        monkeypatch.setattr(turns.todays, "__defaults__", (day,))
        tests = [Item(*kind) for _number in range(100)]
        conftest.pytest_collection_modifyitems(config, tests)
        todays = {number for number, test in enumerate(tests) if not test.marks & {"long", "another_day"}}
        tried |= todays
        shares.add(len(todays))
        if len(tried) == 100 and day > 739960:
            break
    assert shares == SHARES[kind]
    assert len(tried) == (0 if "long" in kind else 100)


def test_cases_that_take_turns_themselves_have_their_day_too():
    """Lost: cases of a test that are run in every fifth run of it only, when those runs are five days apart."""
    for days in (conftest.DAYS, conftest.DAYS_OF_PROCESSES, conftest.DAYS_OF_DEAR):
        assert all(days % smaller for smaller in range(2, days)), f"{days} is no prime number"
