# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that take turns: of many cases that take minutes together, `make test` runs a part, another one each day.

`make test-all` runs all of them: a case whose day it is not is marked `long`, or `another_day`, which stage `mutants`
runs, too. The day is told at the head of pytest's output; with HETERO_DAY set to it the same cases are run again.
What marks tests imports pytest, and nothing else does: tests/run reads this file where there is none.
"""

from __future__ import annotations

import os
from datetime import date

#: Days since 31 December of the year before 1; one for all processes of a run, past midnight as well (tests/run).
DAY = int(os.environ.get("HETERO_DAY") or date.today().toordinal())


def todays(cases, days, day=DAY):
    """Every `days`-th of the cases, from another one on each day: in so many days each has had its turn."""
    return cases[day % days :: days]


def in_turns(cases, days):
    """Parameters: today's are run by `make test`, the others by `make test-all` only."""
    import pytest

    today = range(len(cases))[DAY % days :: days]
    return [
        case if number in today else pytest.param(case, marks=pytest.mark.long) for number, case in enumerate(cases)
    ]


def mark_other_days(items, days, mark="another_day"):
    """Every `days`-th of these tests is left for today, each test's cases counted one by one; the others are marked.

    Parameters that take turns themselves (in_turns) need another number of days without a divisor in common, or some of
    them never have their day.
    """
    import pytest

    items = [item for item in items if not item.get_closest_marker("long")]
    today = set(todays(items, days))
    for item in items:
        if item not in today:
            item.add_marker(getattr(pytest.mark, mark))
