# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a reader has to take in at once: the lines of a file and of a function of the plugins, and the task files
that playbooks share.

Ruff holds the number of a function's arguments (pyproject.toml). `make figures` prints what there is.
"""

from __future__ import annotations

import ast
import re

import figures

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: Most lines of a file, and of a function from its `def` to its end.
FILE, FUNCTION = 400, 60
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
#: Most files of tasks, and most lines of all of them: what is more than asking and acting is decided in Python.
TASK_FILES, TASK_LINES = 12, 250
PLAYBOOKS = {path: path.read_text() for path in sorted((ROOT / "playbooks").rglob("*.yml"))}
TASKS = {path: text for path, text in PLAYBOOKS.items() if path.parent.name == "tasks"}
#: Those of a copy from one host to another, which only a move goes through.
MOVE_FILES, MOVE_LINES = 5, 200
MOVES = {path: text for path, text in PLAYBOOKS.items() if path.parent.name == "moves"}
#: An include or import of tasks.
INCLUDE = re.compile(r"(?:include|import)_tasks: +([\w./]+)")
#: The line of a function, class or decorator.
HEAD = re.compile(r"( *)(?:def|async def|class|@)", re.ASCII)


def may_be_long(text, most):
    """Whether a function of this text may have more lines: it ends before the next head that is no further in.

    It spares parsing nearly all files, which would take five seconds of a processor.
    """
    lines = text.splitlines()
    heads = [(number, len(found[1])) for number, found in enumerate(map(HEAD.match, lines)) if found]
    for at, (number, depth) in enumerate(heads):
        following = next((after for after, other in heads[at + 1 :] if other <= depth), len(lines))
        if following - number > most and not lines[number].lstrip().startswith(("class", "@")):
            return True
    return False


def long_functions(text, most):
    """[(lines, name)] of the functions of a text that have more lines, those in others and in classes as well."""
    if not may_be_long(text, most):
        return []
    there = [node for node in ast.walk(ast.parse(text)) if isinstance(node, figures.FUNCTIONS)]
    sizes = [(node.end_lineno - node.lineno + 1, node.name) for node in there]
    return [one for one in sizes if one[0] > most]


def test_no_file_is_longer_than_a_reader_reads_at_once():
    """Lost: whoever looks for one thing in a file of several subjects."""
    sizes = {path.relative_to(ROOT).as_posix(): figures.lines(path.read_text()) for path in PLUGINS}
    assert len(sizes) > 600
    assert {path: size for path, size in sizes.items() if size > FILE} == {}


def test_no_function_is_longer_than_a_screen():
    """Lost: what a function does, between what it begins with and what it returns."""
    found = {path.relative_to(ROOT).as_posix(): long_functions(path.read_text(), FUNCTION) for path in PLUGINS}
    assert {path: sizes for path, sizes in found.items() if sizes} == {}


def test_what_is_long_is_told():
    """Lost: both tests above, which would pass whatever there is."""
    short = "def f(\n    a,\n) -> int:\n    b = a\n    return b\n"
    inner = "def g():\n    class C:\n        def h(self):\n            a = 1\n            return a\n\n    return C\n"
    method = "class C:\n    @property\n    def p(self):\n        a = '''\nx\n'''\n        return a\n\n\nX = 1\n"
    assert long_functions(short, 5) == []
    assert long_functions(short, 4) == [(5, "f")]
    assert long_functions(f"{short}\n\n{inner}", 4) == [(5, "f"), (7, "g")]
    assert long_functions(inner, 2) == [(7, "g"), (3, "h")]
    assert long_functions(method, 4) == [(5, "p")]
    assert long_functions("async " + short, 4) == [(5, "f")]


def test_playbooks_share_few_tasks():
    """Lost: the way of a request through its plays, to whoever follows it from file to file.

    What is counted are the files of playbooks/tasks. Those of playbooks/tasks/moves are counted by themselves, for no
    request is followed through them: a root is copied in thousands of pieces, each of which goes from one host to the
    other by two calls, in rounds of which each is a file.
    """
    assert len(TASKS) <= TASK_FILES
    assert sum(map(figures.lines, TASKS.values())) <= TASK_LINES
    assert 0 < len(MOVES) <= MOVE_FILES
    assert sum(map(figures.lines, MOVES.values())) <= MOVE_LINES
    assert {path.parent.name for path in PLAYBOOKS if "tasks" in path.parts} == {"tasks", "moves"}
    into = {path.name for path, text in PLAYBOOKS.items() if "tasks/moves/" in text}
    assert into == {"migrate_instance.yml", "move.yml"}


def test_no_task_file_includes_itself():
    """Lost: how often a task runs, which a circle of includes tells nobody."""
    there = {**TASKS, **MOVES}
    named = {path: INCLUDE.findall(text) for path, text in there.items()}
    included = {path: {(path.parent / name).resolve() for name in names} for path, names in named.items()}
    assert sum(map(len, included.values())) > 8
    assert set().union(*included.values()) <= set(there), "a file that is there"
    assert figures.in_circles(included) == []


def test_no_play_keeps_a_variable_in_facts():
    """Lost: what a request is, to facts that any task may change; it is one value, which each step passes on.

    Two compute something once that stays: what the status shows, so that its table, page and files are of one time, and
    who asks for what, for the flavors that are free.
    """
    named = {path.name: text.count("set_fact:") for path, text in PLAYBOOKS.items()}
    assert {name: times for name, times in named.items() if times} == {"flavors.yml": 1, "status.yml": 1}
