# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One mutant asked about in a place that an earlier one left as it should not be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from mutants.run import Trial, verdict
from mutants.sampling import mutants

SOURCE = "def f():\n    return 1\n"
TEST = "tests/unit/scheduling/test_f.py::test_f"


class Copy:
    """A copy in which the test fails: while it is not begun anew, or for good."""

    def __init__(self, for_good):
        self.fails, self.for_good, self.began = True, for_good, 0

    def ask(self, seconds):
        said = dict(verdict="failed", test=TEST, passed=[])
        return said if self.fails else dict(verdict="passed", test=None, passed=[TEST])

    def begin_anew(self):
        self.began += 1
        self.fails = self.for_good

    def write(self, path, source):
        pass


@pytest.mark.parametrize("for_good", [False, True])
def test_what_a_mutant_left_behind_fails_no_test_for_good(for_good):
    """Lost: the tests of cgroups and containers, for all later mutants: survivors which a test notices."""
    copy, trial = Copy(for_good), Trial(SimpleNamespace(seconds={TEST: 1.0}))
    answer = trial._once(copy, mutants("flavors/f.py", SOURCE)[0], SOURCE, [TEST])
    assert answer == (("unsound", TEST, 0) if for_good else ("passed", None, 1))
    assert (trial.unsound, copy.began) == ({TEST} if for_good else set(), 1)


def test_what_was_passed_over_was_not_asked():
    """Lost once: all tests whose day it was not, and each mutant that they alone know lived on."""
    copy, trial = Copy(for_good=False), Trial(SimpleNamespace(seconds={TEST: 1.0, "other": 1.0}))
    copy.fails = False
    answer = trial._once(copy, mutants("flavors/f.py", SOURCE)[0], SOURCE, [TEST, "other"])
    assert (answer, trial.unsound) == (("passed", None, 1), {"other"})


@pytest.mark.parametrize(("survivors", "unsound", "code"), [(14, 5, 0), (15, 0, 1), (0, 6, 1)])
def test_a_run_fails_by_what_lived_on_and_by_whom_it_could_not_ask(survivors, unsound, code):
    """A whole folder of tests was once not asked, and its mutants counted as nobody's."""
    summary, ended = verdict(7, 300, survivors, unsound)
    assert ended == code
    assert (f", {unsound} tests not asked" in summary) == (unsound > 0)
