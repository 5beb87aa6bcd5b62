# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests are asked about a mutant: those that ran its lines when they were recorded, of each way through its
function some, the quickest first, and a few that speak of what the line speaks of.

What is run once at import (constants, classes, defaults) has no test of its own: asked are the file's own tests and
those that run the function that has the default, or the lines that name the constant, else all that run anything of the
file. What runs in a child that ends without a word (os._exit, a kill) is not seen: asked are those that ran anything
else of its function, or of functions that name it, else all that run anything of the file.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections import Counter
from pathlib import Path

from coverage import CoverageData

#: At most so many tests a mutant, and so many seconds of them as they were recorded.
TESTS, SECONDS = 150, 200
#: Seconds up to which a test is quick.
QUICK = 3
#: So many test functions that have the rarest words of a mutant's line are asked, of which none takes all the time.
TELLING = 8
WORD = re.compile(r"[A-Za-z]{4,}")


class Recorded:
    """What tests ran.

    :param folder: with coverage's combined file `data`, and times-*.jsonl, as mutants.recording leaves them.
    :param sources: path → source of all files that were measured; paths as mutants name them.
    :param tests: path → source of the files of tests.
    """

    def __init__(self, folder, sources, tests):
        self.sources = sources
        self.words = {}
        for path, source in tests.items():
            lines = source.split("\n")
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef):
                    text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                    self.words.setdefault((path, node.name), set()).update(WORD.findall(text))
        self.seconds = {}
        for times in Path(folder).glob("times-*.jsonl"):
            self.seconds.update(map(json.loads, times.read_text().splitlines()))
        data = CoverageData(str(Path(folder) / "data"))
        data.read()
        measured = {name: f"/{name}".replace("\\", "/") for name in data.measured_files()}
        self.lines = {}
        for path in sources:
            for name in [name for name, whole in measured.items() if whole.endswith(f"/{path}")]:
                for line, tests in data.contexts_by_lineno(name).items():
                    known = self.lines.setdefault(path, {}).setdefault(line, set())
                    known.update(test for test in tests if test in self.seconds)

    def ran(self, path, lines):
        at = self.lines.get(path, {})
        return set().union(*(at.get(line, ()) for line in lines))

    def tests(self, mutant):
        """All tests that can notice it."""
        tree = ast.parse(self.sources[mutant.path])
        holder = function_at(tree, mutant.first)
        if holder is None:
            return self.importing(tree, mutant)
        body = range(holder.body[0].lineno, holder.end_lineno + 1)
        in_head = holder.body[0].lineno > mutant.last
        lines = body if in_head else range(mutant.first, mutant.last + 1)
        return (
            self.ran(mutant.path, lines)
            or self.ran(mutant.path, body)
            or self.naming(mutant.path, {holder.name}, True)
            or self.ran(mutant.path, in_functions(self.sources[mutant.path]))
        )

    def importing(self, tree, mutant):
        """Tests that can notice a mutant of what is run at import."""
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.lineno <= mutant.line <= node.end_lineno:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        found = self.naming(mutant.path, names) if names else set()
        return self.own(mutant.path) | (found or self.ran(mutant.path, in_functions(self.sources[mutant.path])))

    def own(self, path):
        """The tests of a file's own: who only looks at a constant runs no line that has it."""
        return {test for test in self.seconds if test.partition("::")[0] == self.own_file(path)}

    @staticmethod
    def own_file(path):
        """Where the tests of a file are: they mirror the tree."""
        folder, stem = Path(path).parent.as_posix(), Path(path).stem
        return f"tests/unit/{folder.partition('/_hetero/')[2]}/test_{stem}.py"

    def naming(self, path, names, whole=False):
        """Tests that ran a line that has one of these names of file `path`, or anything of the function around it."""
        found, word = set(), re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        for other, source in self.sources.items():
            if other == path or Path(path).stem in source:
                named = [number for number, line in enumerate(source.split("\n"), 1) if word.search(line)]
                found |= self.ran(other, in_functions(source, named, whole))
        return found

    def asked(self, mutant):
        """Those of its tests that are run, in order, and how many there are in all.

        The ways through its function take turns, for of tests that go one way most know the same.
        """
        tests = self.tests(mutant)
        chosen = [test for test in self.telling(mutant, tests) if self.seconds[test] <= SECONDS / TELLING]
        seconds = sum(map(self.seconds.get, chosen))
        for turn in itertools.zip_longest(*(self.in_turns(mutant, way) for way in self.ways(mutant, tests))):
            for test in sorted(filter(None, turn), key=self.seconds.get):
                left = len(chosen) < TESTS and (not chosen or seconds + self.seconds[test] <= SECONDS)
                if left and test not in chosen:
                    chosen.append(test)
                    seconds += self.seconds[test]
        return sorted(chosen, key=self.seconds.get), len(tests)

    def telling(self, mutant, tests):
        """The quickest case of each of those whose own text has the rarest words of the mutant's line."""
        quickest = {}
        for test in sorted(tests, key=self.seconds.get):
            path, _colons, name = test.partition("[")[0].partition("::")
            quickest.setdefault((path, name.rpartition("::")[2]), test)
        wanted = set(WORD.findall(self.sources[mutant.path].split("\n")[mutant.line - 1]))
        shared = {function: wanted & self.words.get(function, set()) for function in quickest}
        usual = Counter(itertools.chain.from_iterable(shared.values()))
        worth = {function: sum(1 / usual[word] for word in words) for function, words in shared.items() if words}
        return [quickest[function] for function in sorted(worth, key=worth.get, reverse=True)[:TELLING]]

    def ways(self, mutant, tests):
        """The tests by what they ran of the mutant's function: lists of those that ran the same lines of it."""
        holder = function_at(ast.parse(self.sources[mutant.path]), mutant.first)
        at, ran = self.lines.get(mutant.path, {}), {test: [] for test in sorted(tests)}
        for line in range(holder.lineno, holder.end_lineno + 1) if holder else ():
            for test in tests & at.get(line, set()):
                ran[test].append(line)
        found = {}
        for test, lines in ran.items():
            found.setdefault(tuple(lines), []).append(test)
        return found.values()

    def in_turns(self, mutant, tests):
        """Quick ones first, of these its file's own, then the ones in its folder's own; among them files take turns."""
        groups, own = {}, self.own_file(mutant.path)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            file = test.partition("::")[0]
            others = Path(file).parent != Path(own).parent
            group = groups.setdefault((self.seconds[test] > QUICK, file != own, others), {})
            group.setdefault(file, []).append(test)
        for _kind, files in sorted(groups.items()):
            yield from filter(None, itertools.chain.from_iterable(itertools.zip_longest(*files.values())))


def function_at(tree, line):
    """The innermost function whose head or body has that line; None outside of all."""
    holders = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and min([node.lineno, *(one.lineno for one in node.decorator_list)]) <= line <= node.end_lineno
    ]
    return max(holders, key=lambda node: node.lineno, default=None)


def in_functions(source, lines=None, whole=False):
    """The lines in bodies of functions; of `lines` those, or all of the bodies that have one of them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = range(node.body[0].lineno, node.end_lineno + 1)
            chosen = body if lines is None else [line for line in lines if line in body]
            found.update(body if whole and chosen else chosen)
    return found
