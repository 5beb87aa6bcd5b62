# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the recorded tests are asked about a mutant."""

from __future__ import annotations

import json

import pytest
from coverage import CoverageData
from mutants import choosing, sampling

PATH = "plugins/module_utils/_hetero/drivers/power/switch.py"
SOURCE = """\
LIMIT = 8


def switch(outlet):
    if outlet > LIMIT:
        return "none"
    return "on"


def in_a_child():
    return 3
"""
USUAL = [f"tests/unit/drivers/power/test_usual.py::test_{number}" for number in range(choosing.TESTS)]
RARE = "tests/unit/verbs/test_rare.py::test_none"
#: Looks at the constant alone, and so runs no line.
OWN = "tests/unit/drivers/power/test_switch.py::test_limit"


#: The text of the slow one.
TEXT = """
def test_none():
    outlet = 9
    assert switch(outlet) == "none"
"""


@pytest.fixture
def recorded(tmp_path):
    """Many quick tests that go one way, and a slow one that goes the other."""
    data = CoverageData(str(tmp_path / "data"))
    for test in [*USUAL, RARE]:
        data.set_context(test)
        data.add_lines({str(tmp_path / PATH): [5, 6] if test == RARE else [5, 7]})
    data.write()
    times = [json.dumps([test, 0.1]) for test in [*USUAL, OWN]]
    (tmp_path / "times-1.jsonl").write_text("\n".join([*times, json.dumps([RARE, 30.0])]) + "\n")
    return choosing.Recorded(tmp_path, {PATH: SOURCE}, {RARE.partition("::")[0]: TEXT})


def asked(recorded, old):
    mutant = next(one for one in sampling.mutants(PATH, SOURCE) if one.old == old)
    return recorded.asked(mutant)


def test_each_way_through_a_function_is_asked(recorded):
    """Else a fault counts as unnoticed that a slow test notices, and a developer writes that test once more."""
    tests, known = asked(recorded, "outlet > LIMIT")
    assert known == len(USUAL) + 1
    assert len(tests) == choosing.TESTS
    assert tests[-1] == RARE


def test_a_line_is_asked_about_with_the_tests_that_ran_it(recorded):
    """Else the time goes to tests that cannot know."""
    assert asked(recorded, '"none"') == ([RARE], 1)


def test_what_no_test_was_seen_to_run_is_asked_about_with_those_of_its_file(recorded):
    """Else all code that runs in a child, where nothing is recorded, counts as untested."""
    assert asked(recorded, "3")[1] == len(USUAL) + 1


def test_a_constant_is_asked_about_with_the_tests_that_ran_what_names_it(recorded):
    """Else no fault of a bound would be noticed: it is read once, before any test."""
    tests, known = asked(recorded, "8")
    assert known == len(USUAL) + 2
    assert OWN in tests


def test_who_speaks_of_what_the_line_speaks_of_is_asked(recorded, monkeypatch):
    """Else a fault that one slow test of hundreds knows is hunted by a developer, who finds that test."""
    monkeypatch.setattr(choosing.Recorded, "ways", lambda recorded, mutant, tests: [USUAL])
    recorded.seconds[RARE] = 20.0
    assert RARE in asked(recorded, "outlet > LIMIT")[0]
    recorded.words.clear()
    assert RARE not in asked(recorded, "outlet > LIMIT")[0]


def test_no_mutant_takes_longer_than_is_agreed(recorded, monkeypatch):
    """Else some survivors take all of the stage's time, and the others are not asked about at all."""
    monkeypatch.setattr(choosing, "SECONDS", 5)
    tests, _known = asked(recorded, "outlet > LIMIT")
    assert RARE not in tests
    assert sum(recorded.seconds[test] for test in tests) <= 5


def test_the_tests_of_a_file_are_asked_before_those_of_others(tmp_path):
    """Else quick tests of anything use up the turns, and a fault that its own test knows counts as unnoticed."""
    others = [f"tests/unit/verbs/test_{number}.py::test_it" for number in range(choosing.TESTS + 5)]
    beside, own = "tests/unit/drivers/power/test_usual.py::test_it", OWN
    data = CoverageData(str(tmp_path / "data"))
    for test in [*others, beside, own]:
        data.set_context(test)
        data.add_lines({str(tmp_path / PATH): [5, 7]})
    data.write()
    times = [*([test, 0.01] for test in others), [beside, 1.0], [own, 2.0]]
    (tmp_path / "times-1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in times))
    recorded = choosing.Recorded(tmp_path, {PATH: SOURCE}, {})
    mutant = next(one for one in sampling.mutants(PATH, SOURCE) if one.old == "outlet > LIMIT")
    assert list(recorded.in_turns(mutant, {*others, beside, own}))[:2] == [own, beside]
    assert {own, beside} <= set(recorded.asked(mutant)[0])
