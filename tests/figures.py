# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The house in figures, a column for each revision: `.venv/bin/python tests/figures.py [REVISION …]`, else the last.

Lines are all lines of a file; a function's are from its `def` to its end. A function has types where each parameter but
`self` and `cls`, and what it returns, has an annotation; one without parameters needs none. A room is a folder right
below the house; rooms stand in a circle where each can be reached from the other by imports. Whose test a test file
is, mirror.py says. What each verb takes, in tasks and in round trips to its node, is measured: `bench/verbs.py`.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

import mirror

ROOT = Path(__file__).resolve().parent.parent
UTILS = "plugins/module_utils/"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: More arguments than a reader keeps in mind.
MOST_ARGUMENTS = 7


def files_of(revision):
    """{path: text} of the house's and its tests' Python files and of the playbooks, as a revision of git has them."""
    argv = ["git", "ls-tree", "-d", "--name-only", revision, UTILS.rstrip("/"), "plugins/plugin_utils", "playbooks"]
    there = subprocess.run([*argv, "tests/unit"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    argv = ["git", "archive", revision, *there.split()]
    archive = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [member for member in tar if member.isfile() and member.name.endswith((".py", ".yml"))]
        return {member.name: tar.extractfile(member).read().decode() for member in members}


def lines(text):
    return len(text.splitlines())


def arguments(function):
    """Parameters of a function, in order, `self` and `cls` left out."""
    every = function.args
    named = [*every.posonlyargs, *every.args, *every.kwonlyargs]
    named += [extra for extra in (every.vararg, every.kwarg) if extra]
    return [argument for argument in named if argument.arg not in ("self", "cls")]


def has_types(function):
    taken = arguments(function)
    said = [argument.annotation for argument in taken]
    if function.name != "__init__":
        said.append(function.returns)
    return all(said)


def room_of(path, house):
    """The folder right below the house; None of a file that lies in the house itself."""
    parts = path[len(house) :].split("/")
    return parts[0] if len(parts) > 1 else None


def imports(tree, path, house):
    """Rooms that a file takes something from; module_utils names its own by dots."""
    folder = path[len(house) :].split("/")[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        up = node.level - 1
        if 0 <= up <= len(folder):
            names = [*folder[: len(folder) - up], *(node.module or "").split(".")]
            yield from filter(None, [names[0]] if names[0] else [alias.name for alias in node.names])


def in_circles(graph):
    """Nodes of a graph {node: nodes} that can be reached from themselves by way of another."""

    def reached(start):
        found, todo = set(), list(graph[start])
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo += graph.get(node, ())
        return found

    return sorted(node for node in graph if node in reached(node))


def of_the_house(files):
    house = UTILS + ("_hetero/" if any(path.startswith(UTILS + "_hetero/") for path in files) else "")
    code = {path: text for path, text in files.items() if path.startswith(UTILS)}
    trees = {path: ast.parse(text) for path, text in code.items()}
    functions = [
        (node.end_lineno - node.lineno + 1, f"{Path(path).name}:{node.name}", node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    ]
    rooms = {room_of(path, house) for path in code if path.startswith(house)} - {None}
    graph = {room: set() for room in rooms}
    for path, tree in trees.items():
        room = room_of(path, house) if path.startswith(house) else None
        if room:
            graph[room] |= set(imports(tree, path, house)) & rooms - {room}
    sizes = sorted((lines(text), path[len(house) :]) for path, text in code.items())
    longest = max(functions, key=lambda function: function[0])
    yield "module_utils: files", len(code)
    yield "module_utils: lines", sum(size for size, _path in sizes)
    yield "file: lines, median", round(statistics.median(size for size, _path in sizes))
    yield "file: lines, longest", f"{sizes[-1][0]} ({sizes[-1][1]})"
    yield "functions", len(functions)
    yield "function: lines, median", round(statistics.median(size for size, _name, _node in functions))
    yield "function: lines, longest", f"{longest[0]} ({longest[1]})"
    yield "functions without types", sum(not has_types(node) for _size, _name, node in functions)
    many = sum(len(arguments(node)) > MOST_ARGUMENTS for _size, _name, node in functions)
    yield f"functions with more than {MOST_ARGUMENTS} arguments", many
    circles = in_circles(graph)
    yield "rooms in circles", f"{len(circles)} of {len(rooms)}"


def of_the_playbooks(files):
    plays = {path: text for path, text in files.items() if path.startswith("playbooks/")}
    tasks = {path: text for path, text in plays.items() if path.startswith("playbooks/tasks/")}
    for name, texts in (("playbooks", plays), ("playbooks/tasks", tasks)):
        yield f"{name}: files", len(texts)
        yield f"{name}: lines", sum(map(lines, texts.values()))
        facts = sum(len(re.findall(r"^\s*(?:- )?ansible\.builtin\.set_fact:", text, re.M)) for text in texts.values())
        yield f"{name}: set_fact tasks", facts


def of_the_tests(files):
    """How many files a reader finds the tests of; the ground and the rooms, and plugin_utils."""
    seen = mirror.Mirror(files)
    of_all = f"of {len(seen.house)}"
    yield "files without a test of the same name", f"{len(seen.without_same_name())} {of_all}"
    yield "files whose test is not found", f"{len(seen.not_found())} {of_all}"
    yield "files that no test imports", f"{len(seen.not_imported())} {of_all}"


def figures(revision):
    """{what: figure}, in the order of the table."""
    files = files_of(revision)
    return {**dict(of_the_house(files)), **dict(of_the_playbooks(files)), **dict(of_the_tests(files))}


def main(revisions):
    columns = {revision: figures(revision) for revision in revisions or ["HEAD"]}
    rows = [["", *columns]]
    rows += [[what, *(str(column[what]) for column in columns.values())] for what in next(iter(columns.values()))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
