# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which faults are put into the code, and that the same seed puts the same."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

import pytest
from mutants import run, sampling

UTILS = Path(__file__).resolve().parents[3] / "plugins" / "module_utils" / "_hetero"
SOURCES = {str(path): path.read_text() for path in sorted((UTILS / "drivers" / "power").glob("*.py"))}


def changes(source):
    return {(mutant.old, mutant.new) for mutant in sampling.mutants("x.py", source)}


def test_the_same_seed_gives_the_same_mutants():
    """Else a survivor that a developer is told of cannot be had again."""
    once = sampling.sample(SOURCES, 50, 7)
    assert once == sampling.sample(dict(reversed(SOURCES.items())), 50, 7)
    assert len({(mutant.path, mutant.line) for mutant in once}) == 50
    assert once != sampling.sample(SOURCES, 50, 8)


def around(mutant, changed, source):
    """The changed statement of the file, from the margin on: to compile the whole file for each takes seconds."""
    (there,) = [node for node in tops(source) if first(node) <= mutant.line <= node.end_lineno]
    lines, before = changed.split("\n"), source.split("\n")
    end = there.end_lineno + len(lines) - len(before)
    assert lines[: first(there) - 1] == before[: first(there) - 1], "nothing is changed above it"
    assert lines[end:] == before[there.end_lineno :], "nor below"
    return "\n".join(lines[first(there) - 1 : end])


@lru_cache(maxsize=1)
def tops(source):
    return ast.parse(source).body


def first(node):
    return min([node.lineno, *(word.lineno for word in getattr(node, "decorator_list", []))])


def test_every_mutant_is_another_program_that_can_be_read():
    """Else what cannot even be imported counts as noticed, and the figures flatter."""
    for path, source in SOURCES.items():
        found = sampling.mutants(path, source)
        assert found or len(source.splitlines()) < 20
        for mutant in found:
            changed = mutant.applied(source)
            compile(around(mutant, changed, source), path, "exec")
            assert changed != source
            # where it says that it is
            assert source.split("\n")[mutant.line - 1].encode().find(mutant.old.split("\n")[0].encode()) >= 0
            assert mutant.first <= mutant.line <= mutant.last


def test_what_people_read_is_left_alone():
    """Else the survivors that count drown among changed words."""
    source = '''\
"""Of the file, 5."""
from typing import TYPE_CHECKING
__all__ = ["one"]
if TYPE_CHECKING:
    import nothing_of_it
def one(name: "int" = None) -> "str":
    """one &= 6."""
    raise errors.Refused("left", name, remedy="right", more=7)
def two(say):
    say(f"a {name} of 8", remedy="again", what="9", prefix="ours-")
    return "no outlet answers"
'''
    assert changes(source) == {
        ('raise errors.Refused("left", name, remedy="right", more=7)', "pass"),
        ('say(f"a {name} of 8", remedy="again", what="9", prefix="ours-")', "pass"),
        ('return "no outlet answers"', "return None"),
    }


def test_what_only_forbids_other_code_is_left_alone():
    """Else values that nobody changes count as untested for each class of them."""
    assert changes("@dataclass(frozen=True, order=True)\nclass A: pass") == {("True", "False")}
    assert len(sampling.mutants("x.py", "@dataclass(frozen=True)\nclass A: pass")) == 0


def test_how_much_a_cache_keeps_is_left_alone():
    """It costs time alone: nothing comes out differently."""
    assert changes("@lru_cache(maxsize=4096)\ndef a(): pass") == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(a < b)", {("a < b", "(a <= b)"), ("a < b", "(a >= b)"), ("f(a < b)", "pass")}),
        ("x = a is None", {("a is None", "(a is not None)")}),
        ("x = a and b", {("a and b", "(a or b)")}),
        ("x = not a", {("not a", "(a)")}),
        ("x = (ä + b) * c", {("ä + b", "(ä - b)"), ("(ä + b) * c", "((ä + b) // c)")}),
        ("x = 2", {("2", "3"), ("2", "20")}),
        ("x = 30", {("30", "300")}),
        ("x = 0x30", {("0x30", "49"), ("0x30", "480")}),
        ("x = a.strip('.')", set()),
        ("x = round(2, 3)", {("2", "3"), ("2", "20")}),
        ("x = True", {("True", "False")}),
        ("x = 'on'", {("'on'", "'XXon'")}),
        ("x = a[1:b]", {("1:b", ":b"), ("1:b", "1:"), ("1", "2"), ("1", "10")}),
        ('def f(a): use(cast("A", a, 7))', {('use(cast("A", a, 7))', "pass"), ("7", "8"), ("7", "70")}),
        ("def f(a=3): return a", {("3", "4"), ("3", "30"), ("return a", "return None")}),
        ("if a:\n  x.y = z", {("a", "(not a)"), ("x.y = z", "pass")}),
        ("for a in b:\n  continue", {("continue", "break")}),
        ("while a: break", {("a", "(not a)"), ("break", "continue")}),
        ("x = [a for a in b if a]", {("a", "(not a)")}),
    ],
)
def test_faults(source, expected):
    """Each kind of fault that people make; without it, none of its kind would ever be looked for."""
    assert changes(source) == expected


def test_what_nobody_can_notice_is_not_chosen():
    """Else a survivor with a reason stays one, and the next fault hides behind it."""
    sources = {"x.py": "x = 2\n"}
    assert [mutant.new for mutant in sampling.sample(sources, 9, 1, {("x.py", "x = 2", "2", "20")})] == ["3"]


def test_each_that_nobody_can_notice_is_still_one():
    """Else a line that was changed since is a fault that counts again, and its reason stands there for nothing."""
    sources, _measured = run.candidates(run.ROOT, "")
    named = {entry[0] for entry in run.equivalent(run.ROOT)}
    there = {
        (path, sources[path].split("\n")[mutant.line - 1].strip(), mutant.old, mutant.new)
        for path in named
        for mutant in sampling.mutants(path, sources[path])
    }
    assert run.equivalent(run.ROOT) - there == set()
