# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide to errors against the code. If these fail, a user looks a message up in vain, or reads a wrong one."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide
from ansible_collections.hetero.compute.tests.unit.plugin_utils import test_request_mistakes, test_request_words

#: Where a message has something that differs, in the guide; and in what is read from the code.
LEFT_OUT, HOLE = "…", "\0"
#: The first cell of a row, and a message in it; there may be several.
ROW = re.compile(r"^   \* - (``.*``|:literal:`.*`)$", re.MULTILINE)
LITERAL = re.compile(r"``(.+?)``|:literal:`((?:\\`|[^`])+)`")


def said(node):
    """The text of a string in the code, with holes; None for what is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
    return None


def last_name(base):
    """The name of a class as it stands among the bases of another one, without its module."""
    return ast.unparse(base).rpartition(".")[2]


@lru_cache(maxsize=1)
def read():
    """(all texts in the code that a person may see, the names of all kinds of HeteroError)."""
    texts, kinds, classes = set(), {"HeteroError"}, {}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):  # each file once: this is the time that these tests take
            if isinstance(node, (ast.Constant, ast.JoinedStr)):
                texts.add(said(node))
            elif isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, set()).update(map(last_name, node.bases))
    texts -= {None, ""}
    while more := {name for name, bases in classes.items() if bases & kinds} - kinds:
        kinds |= more
    for path in (ROOT / "playbooks").rglob("*.yml"):
        texts.add(path.read_text())
    texts.update(test_request_words.all_said(), test_request_mistakes.all_said())
    return texts, kinds


def rows():
    """({kinds}, [messages]) of the guide's tables."""
    cells = [found for row in ROW.findall(guide("errors")) for found in LITERAL.findall(row)]
    found = [literal or escaped.replace("\\", "") for literal, escaped in cells]
    kinds = {word for word in found if re.fullmatch(r"[A-Z]\w+", word)}
    return kinds, [word for word in found if word not in kinds]


def is_said(message, texts):
    """Whether one of the texts of the code prints this message; what is left out may be a hole, or more words."""
    pieces = [piece.strip() for piece in message.split(LEFT_OUT)]
    pattern = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
    longest = max(pieces, key=len)  # it is looked for first: most texts have it not
    return any(pattern.search(text) for text in texts if longest in text)


def test_every_kind_of_error_is_explained_and_no_other():
    """A user sees a kind in `failure`, or in the guides for developers, that the guide does not know."""
    kinds, _messages = rows()
    assert kinds == read()[1]


def test_every_message_is_one_that_the_code_says():
    """A message was reworded, and the guide was not."""
    texts, _kinds = read()
    _kinds, messages = rows()
    assert len(messages) > 60
    assert [message for message in messages if not is_said(message, texts)] == []


@pytest.mark.parametrize("message", ["is not a message of this collection", "is held by … and was never said so"])
def test_a_message_that_nobody_says_is_seen(message):
    """The test above would find everything."""
    assert not is_said(message, read()[0])


@pytest.mark.parametrize(
    ("first", "options"),
    [
        ("force is …: give true or false", {*test_request_words.TRUTHS} - {"force"}),
        # of proxy another row tells
        ("count is … give a whole number", {*test_request_words.TAKEN} - {"count", "proxy", "wait"}),
    ],
)
def test_each_option_that_is_refused_so_is_named(first, options):
    """Lost: what is wrong with an option, to who looks its message up."""
    _before, _first, row = guide("errors").partition(f"   * - ``{first}")
    means = row.partition("\n   * - ")[0]
    assert sorted(word for word in options if f"``{word}``" not in means) == []
