# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the playbooks' own, whose names begin with _. If these fail, a playbook names one that there is not."""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
#: What names other files that belong to a playbook, and what is an expression without braces.
FILES = ("import_playbook", "import_tasks", "include_tasks", "vars_files")
EXPRESSIONS = ("changed_when", "failed_when", "that", "until", "when")
TEMPLATE = re.compile(r"\{[{%](.*?)[}%]\}", re.DOTALL)
WORDS = re.compile(r"'[^']*'|\"[^\"]*\"")
#: A name, unless what stands behind it says that it may be missing.
NAME = re.compile(r"(?<![\w.])(_[a-z]\w*)\b(?!\s*(?:\||is)\s*(?:default|(?:not )?(?:un)?defined)\b)")


class Loader(yaml.SafeLoader):
    """Reads a text that is no template to Ansible as nothing."""


Loader.add_constructor("!unsafe", lambda _loader, _node: "")


def parts(value):
    """A value, and all that is in it."""
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(part)


def read(path, found):
    """Put {path: what it says} of a file, and of all that it names, into `found`; return it."""
    found[path] = yaml.load(path.read_text(), Loader)
    for one in parts(found[path]):
        for key, value in one.items() if isinstance(one, dict) else ():
            for name in parts(value) if str(key).rpartition(".")[2] in FILES else ():
                other = (path.parent / name).resolve() if isinstance(name, str) and "{" not in name else path
                if other not in found:
                    read(other, found)
    return found


def names(value):
    """The names in the expressions of a value, at any depth."""
    found = set()
    for one in parts(value):
        texts = TEMPLATE.findall(one) if isinstance(one, str) else []
        for key in EXPRESSIONS if isinstance(one, dict) else ():
            texts += [text for text in parts(one.get(key)) if isinstance(text, str)]
        found |= {name for text in texts for name in NAME.findall(WORDS.sub("''", text))}
    return found


def variables(found):
    """{name: its value, or None} of what the files of a playbook give names to."""
    given = {}
    for content in found.values():
        given.update(content if isinstance(content, dict) else {})  # a file of variables
        for one in parts(content):
            if isinstance(one, dict):
                given.update({one.get("register"): None, one.get("loop_var"): None})
                for key in ("vars", "ansible.builtin.set_fact"):
                    given.update(one[key] if isinstance(one.get(key), dict) else {})
    return given


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_each_name_is_given(playbook):
    """Lost: the playbook: a variable that another one shared with it went to where that alone has it."""
    found = read(playbook.resolve(), {})
    given = variables(found)
    # of a file of variables only what is used has to be whole
    left, seen = set().union(*(names(content) for content in found.values() if isinstance(content, list))), set()
    while left:
        name = left.pop()
        seen.add(name)
        left |= names(given.get(name)) - seen
    assert sorted(seen - set(given)) == []
