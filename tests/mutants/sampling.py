# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small faults that can be put into a Python file: what each changes, and a sample of them by seed.

A fault is a piece of source text in another one's place, found by the positions that `ast` gives. Left alone is what
only people read: docstrings, sentences, all that a `raise` says (the `raise` itself can go), annotations, f-strings.
"""

from __future__ import annotations

import ast
import random
import re
from typing import NamedTuple

#: operator → those that take its place: its boundary, its contrary
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
#: Keyword arguments in which words for people stand; a prefix is what they know a temporary file's maker by.
MESSAGES = {"remedy", "what", "reason", "help", "description", "why", "prefix"}
#: Two words of a sentence; a program's words ("aes 256") are seldom two with letters only.
SENTENCE = re.compile(r"[A-Za-z',:;.)]{2,} [(']?[a-z]{2,}")
#: Numbers from here on, unless hexadecimal, are bounds and times.
BOUND = 10
STRIPS = {"strip", "lstrip", "rstrip"}
GUARDS = re.compile(r"TYPE_CHECKING|__name__")


class Mutant(NamedTuple):
    """`old`, which stands at `start` in bytes of file `path`, becomes `new`.

    :param line: of the file, from 1.
    :param first: the first line of the statement it is in; of a compound one, of its head.
    :param last: the last of these lines.
    """

    path: str
    line: int
    first: int
    last: int
    start: int
    old: str
    new: str

    def applied(self, source):
        raw = source.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.start + len(self.old.encode()) :]).decode()

    def __str__(self):
        return f"{self.path}:{self.line}: {' '.join(self.old.split())}  →  {self.new}"


class _Finder:
    """Walks a file's tree and keeps each fault that it finds, in the order of the text."""

    def __init__(self, path, source):
        self.path = path
        self.raw = source.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found = []
        self.head = (1, 1)

    def put(self, node, new):
        """In the place of `node`: text, or a node, in brackets, for around it may be what binds closer."""
        if isinstance(new, ast.AST):
            new = f"({ast.unparse(new)})"
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        old = self.raw[start:end].decode()
        self.found.append(Mutant(self.path, node.lineno, *self.head, start, old, new))

    def body(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, node):
        if isinstance(node, ast.If) and GUARDS.search(ast.unparse(node.test)):
            return self.body(node.orelse)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return None  # a docstring
        parts = getattr(node, "body", None)
        # a def's head begins with its decorators
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        self.head = (first, max(first, parts[0].lineno - 1) if parts else node.end_lineno)
        self.removed(node)
        if not isinstance(node, ast.Raise):
            for name, value in ast.iter_fields(node):
                if name not in ("body", "orelse", "finalbody", "handlers", "annotation", "returns", "cases"):
                    self.expressions(value)
        for name in ("body", "orelse", "finalbody"):
            self.body(getattr(node, name, ()))
        for handler in getattr(node, "handlers", ()):
            self.body(handler.body)
        return None

    def removed(self, node):
        """A whole statement, gone or with less in it."""
        if isinstance(node, ast.Expr):
            if isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom, ast.Await)):
                self.put(node, "pass")
        elif isinstance(node, (ast.AugAssign, ast.Raise, ast.Assert, ast.Delete)):
            self.put(node, "pass")
        elif isinstance(node, ast.Assign) and not any(isinstance(one, ast.Name) for one in node.targets):
            if not any(isinstance(one, ast.Tuple) for one in node.targets):
                self.put(node, "pass")
        elif isinstance(node, ast.Return) and node.value is not None:
            if not isinstance(node.value, ast.Constant) or node.value.value:
                self.put(node, "return None")
        elif isinstance(node, ast.Continue):
            self.put(node, "break")
        elif isinstance(node, ast.Break):
            self.put(node, "continue")
        if isinstance(node, (ast.If, ast.While)) and not isinstance(node.test, (ast.Compare, ast.Constant)):
            self.negated(node.test)

    def negated(self, test):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.put(test, test.operand)
        else:
            self.put(test, ast.UnaryOp(ast.Not(), test))

    def expressions(self, value):
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                self.expression(node)

    def expression(self, node):
        if isinstance(node, (ast.JoinedStr, ast.arg)):
            return
        # frozen: what it forbids, nothing here does; maxsize: what a cache does not keep is found out once more
        if isinstance(node, ast.keyword) and node.arg in {*MESSAGES, "frozen", "maxsize"}:
            return
        if isinstance(node, ast.arguments):
            self.expressions([*node.defaults, *node.kw_defaults])
            return
        if isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Compare):
            for index, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                    self.put(node, ast.Compare(node.left, ops, node.comparators))
        elif isinstance(node, ast.BoolOp):
            self.put(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.put(node, node.operand)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not (text(node.left) or text(node.right)):
            self.put(node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
        elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Compare):
            self.negated(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                if not isinstance(test, ast.Compare):
                    self.negated(test)
        elif isinstance(node, ast.Slice):
            if node.lower:
                self.put(node, ast.unparse(ast.Slice(None, node.upper, node.step)))
            if node.upper:
                self.put(node, ast.unparse(ast.Slice(node.lower, None, node.step)))
        for name, value in ast.iter_fields(node):
            if name == "args" and isinstance(node, ast.Call):
                value = arguments(node)
            self.expressions(value)

    def constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self.put(node, str(not value))
        elif isinstance(value, (int, float)):
            written = self.raw[self.starts[node.lineno - 1] + node.col_offset :][:2]
            # of a generous bound one more is nobody's loss
            if abs(value) < BOUND or written.lower() == b"0x":
                self.put(node, repr(value + 1))
            if value:
                self.put(node, repr(value * 10))
        elif isinstance(value, (str, bytes)) and value:
            plain = value if isinstance(value, str) else value.decode("latin-1")
            if not SENTENCE.search(plain):
                self.put(node, repr(value[:0] + ("XX" if isinstance(value, str) else b"XX") + value))


def arguments(call):
    """Those of a call that a fault can matter in."""
    # characters to be stripped: more of them change nothing
    if getattr(call.func, "attr", None) in STRIPS:
        return []
    # the first says to type checkers what the other one is
    if getattr(call.func, "id", None) == "cast":
        return call.args[1:]
    # one more digit of a number that people read
    return call.args[:1] if getattr(call.func, "id", None) == "round" else call.args


def text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def mutants(path, source):
    """All mutants of a file, `path` as they are to name it."""
    finder = _Finder(path, source)
    tree = ast.parse(source)
    finder.body(node for node in tree.body if not _exports(node))
    return list(dict.fromkeys(finder.found))


def _exports(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def sample(sources, count, seed, equivalent=()):
    """`count` mutants of files (path → source), no line twice while there are others, each line as likely as another.

    The same seed and files give the same mutants. In the order of files and lines.

    :param equivalent: not these: (path, the line's text, old, new).
    """
    lines = {}
    for path, source in sorted(sources.items()):
        texts = source.split("\n")
        for mutant in mutants(path, source):
            if (path, texts[mutant.line - 1].strip(), mutant.old, mutant.new) not in equivalent:
                lines.setdefault((path, mutant.line), []).append(mutant)
    chance = random.Random(seed)
    chosen = []
    while lines and len(chosen) < count:
        for key in chance.sample(sorted(lines), min(count - len(chosen), len(lines))):
            chosen.append(lines[key].pop(chance.randrange(len(lines[key]))))
        lines = {key: left for key, left in lines.items() if left}
    return sorted(chosen)
