# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which test file is whose: `.venv/bin/python tests/mirror.py [FILE …]` prints the tests of a file, or of all files.

The test of a file has its name and lies where it does: plugins/module_utils/_hetero/boards/boot/stops.py is tested by
tests/unit/boards/boot/test_stops.py. Where a file is one of several that a test file tests together, or the name is
taken, the test file names it, in a paragraph of its own in its docstring:

    Tests boards/boot/stops.py, boards/boot/starts.py.

Only a test file that imports what it names, or imports a file that does, counts. Nothing else is looked for. Each file
is imported by something in tests/unit itself, so that what no verb shows of it is tested, too. A file that only
declares, such as Protocols, options and constants, needs no test: those of who uses it tell.
"""

from __future__ import annotations

import ast
import re
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
COLLECTION = "ansible_collections.hetero.compute."
UNIT = "tests/unit/"
#: Where the files lie that have tests, and what comes before their paths below tests/unit.
HOMES = {"plugins/module_utils/_hetero/": "", "plugins/plugin_utils/": "plugin_utils/"}
#: The paragraph by which a test file names what it tests.
NAMED = re.compile(r"^Tests ((?:[\w/]+\.py,\s+)*[\w/]+\.py)\.$", re.MULTILINE)

#: An import, of a line or in brackets: to parse each test file whole takes 15 seconds of a processor.
IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+[.\w]+[ \t]+)?import[ \t]+(?:\([^)]*\)|.+))$", re.MULTILINE)
#: A file to the end of its docstring.
HEAD = re.compile(r'(?:#[^\n]*\n|\s)*""".*?"""', re.DOTALL)


def short(path):
    """What a file of the house is called here, `boards/boot/stops.py`; None of any other file."""
    for home, before in HOMES.items():
        if path.startswith(home):
            return before + path[len(home) :]
    return None


def named(text):
    """The files that a test file's docstring names as those that it tests."""
    head = HEAD.match(text)
    said = (head and ast.get_docstring(ast.parse(head.group()))) or ""
    return [name for found in NAMED.finditer(said) for name in re.split(r",\s+", found.group(1))]


def imports(text):
    """The import statements of a file."""
    for found in IMPORT.finditer(text):
        with suppress(SyntaxError):  # a line of a text that is no import
            yield from ast.parse(found.group(1)).body


def imported(path, text, known):
    """Which of the files `known` the file `path` imports, by their paths below the repository's root."""
    folder = [*COLLECTION.rstrip(".").split("."), *PurePosixPath(path).parent.parts]
    modules = set()
    for node in imports(text):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    below = {module[len(COLLECTION) :].replace(".", "/") + ".py" for module in modules if module.startswith(COLLECTION)}
    return below & known


def does_something(text):
    """Whether a file has a function with a body: more than its docstring and `...`."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    return any(isinstance(one, ast.Lambda) or any(map(_acts, one.body)) for one in functions)


def _acts(statement):
    said = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not said and not isinstance(statement, ast.Pass)


class Mirror:
    """Files of the house and of tests/unit, as {path: text}, and which of those test which of these."""

    def __init__(self, files):
        self.house = {short(path): path for path in files if short(path) and not path.endswith("__init__.py")}
        self.tests = sorted(path for path in files if re.match(rf"{UNIT}(?:.*/)?test_\w+\.py$", path))
        self._there = {path for path in files if path.endswith(".py") and (short(path) or path.startswith(UNIT))}
        self._imports = {path: imported(path, files[path], self._there) for path in self._there}
        self.named = {test: named(files[test]) for test in self.tests}
        self._acting = {name for name, path in self.house.items() if does_something(files[path])}

    def same_name(self, name):
        """Where the test of a file lies that has its name, whether there is one or not."""
        path = PurePosixPath(name)
        return f"{UNIT}{path.parent / ('test_' + path.name)}"

    def reached(self, test):
        """Names of files that a test imports, by itself, by a helper of tests, or by a file that it imports."""
        found, todo = set(), [test]
        while todo:
            for path in self._imports[todo.pop()] - found:
                found.add(path)
                if path.startswith(UNIT):
                    todo.append(path)
        further = set().union(*(self._imports.get(path, set()) for path in found)) if found else set()
        return {short(path) for path in found | further} - {None}

    def tests_of(self, name):
        """The test files of a file: the one that has its name, and those that name it and can test it."""
        own = self.same_name(name)
        others = [test for test in self.tests if name in self.named[test] and name in self.reached(test)]
        return [test for test in [own, *others] if test in self._there]

    def without_same_name(self):
        """Names of files that do something and that no test file has the name of."""
        return sorted(name for name in self._acting if self.same_name(name) not in self._there)

    def not_imported(self):
        """Names of files that do something and that nothing in tests/unit imports by itself."""
        taken = set().union(*(paths for path, paths in self._imports.items() if path.startswith(UNIT)))
        return sorted(name for name in self._acting if self.house[name] not in taken)

    def not_found(self):
        """Names of files that do something and whose test is not found by the rule."""
        return sorted(name for name in self._acting if not self.tests_of(name))

    def wrongly_named(self):
        """(test file, name) where a test names a file that is not there, or that it does not reach."""
        reached = {test: self.reached(test) for test in self.tests if self.named[test]}
        return [(test, name) for test, names in reached.items() for name in self.named[test] if name not in names]


@lru_cache(maxsize=None)  # reading it takes five seconds of a processor
def working_tree():
    """The mirror as it lies here."""
    paths = [path for home in [*HOMES, UNIT] for path in sorted((ROOT / home).rglob("*.py"))]
    return Mirror({path.relative_to(ROOT).as_posix(): path.read_text() for path in paths})


def main(names):
    """Print each file and its tests; 1 if there is a file whose tests are not found, or no such file."""
    mirror = working_tree()
    unknown = False
    for name in names or sorted(mirror.house):
        name = short(name) or name
        found = mirror.tests_of(name) if name in mirror.house else []
        unknown = unknown or not found
        print(f"{name}: {', '.join(found) or 'no such file, or no test of it is found'}")
    return int(unknown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
