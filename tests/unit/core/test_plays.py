# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What our messages have people type. If these fail, an operator who pastes what an error says gets another error."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT
from ansible_collections.hetero.compute.tests.unit.documents.test_documented_commands import options
from ansible_collections.hetero.compute.tests.unit.documents.test_errors import said

PLAYS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
#: What a play does not go without, in one way or another.
NEEDED = {
    "console": [{"instance"}, {"node"}],
    "extend_instance": [{"instance", "hours"}],
    "maintenance": [{"node", "state"}],
    "provision_instance": [{"instance", "flavor"}],
    "rebuild_instance": [{"instance", "fresh"}, {"instance", "image"}],
    "repair": [{"node"}],
    **{f"{verb}_instance": [{"instance"}] for verb in ("migrate", "reboot", "start", "stop", "terminate")},
}
NAMES = "|".join(PLAYS)
VERBS = "|".join(name for name in PLAYS if name.endswith("_instance"))
#: A play that is named otherwise than by a whole command line. A filter or a role may have the name of a play, and a
#: program is given one as a word of its own.
BARE = re.compile(
    rf"(?<!-)\bplaybooks? (?:hetero\.compute\.)?(?:{NAMES})\b"
    rf"|(?<!ansible-playbook )(?<!\| )(?<!filter )(?<!role: )(?<!--syntax-check, )hetero\.compute\.(?:{NAMES})\b"
    rf"|(?<![\w.])(?:{VERBS})\b|(?<![\w.])(?:{NAMES}) -e\b"
)
TYPED = re.compile(r"ansible-playbook hetero\.compute\.(\w+)((?: -e \w+=(?:\{\{.*?\}\}|\S)+)*)")


def is_text_for_programs(node):
    """A docstring, or documentation of a module."""
    if isinstance(node, ast.Assign):
        return any(
            isinstance(name, ast.Name) and name.id in ("DOCUMENTATION", "EXAMPLES", "RETURN") for name in node.targets
        )
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def nodes_of(tree):
    """All of a tree that may be text for people; what `play` is called with is checked by itself."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if not is_call(node):
            left += [child for child in ast.iter_child_nodes(node) if not is_text_for_programs(child)]


def is_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "play"


@lru_cache(maxsize=1)
def read():
    """([(file, text)], [(file, Call of play)]) of the code that runs on nodes and controllers."""
    texts, calls = [], []
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        if path.parent.name == "doc_fragments":
            continue
        name = str(path.relative_to(ROOT))
        for node in nodes_of(ast.parse(path.read_text())):
            text = said(node)
            texts += [(name, text)] if text else []
            calls += [(name, node)] if is_call(node) else []
    return texts, calls


def shown_by_plays():
    """[(file, text)] of playbooks and roles, without comments."""
    paths = [path for folder in ("playbooks", "roles") for path in sorted((ROOT / folder).rglob("*.yml"))]
    for path in paths:
        if path.name == "argument_specs.yml":
            continue
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        yield str(path.relative_to(ROOT)), "\n".join(line for line in lines if "import_playbook:" not in line)


def faults(name, given):
    """What is wrong with a command line of ours, in words; None of `given` is more that is not known here."""
    if name not in PLAYS:
        return [f"there is no playbook {name}"]
    unknown = set(filter(None, given)) - options(name)
    needed = [set()] if None in given else NEEDED.get(name, [set()])
    return [f"{name} knows no {sorted(unknown)}"] * bool(unknown) + [f"{name} needs {needed}"] * (
        not any(some <= set(given) for some in needed)
    )


def test_no_message_names_a_play_but_by_a_command_line():
    texts, calls = read()
    assert len(calls) > 30
    assert [(name, text) for name, text in texts if BARE.search(text)] == []


def test_command_lines_in_messages_work():
    _texts, calls = read()
    found = [(path, ast.unparse(call), fault) for path, call in calls for fault in faults(*arguments(call))]
    assert found == []


def arguments(call):
    """(play, words) of a Call; None for a word that stands for more."""
    (name,) = call.args
    return ast.literal_eval(name), [word.arg for word in call.keywords]


def test_plays_name_plays_by_command_lines_too():
    assert [(name, found[0]) for name, text in shown_by_plays() for found in BARE.finditer(text)] == []
    lines = [(name, typed) for name, text in shown_by_plays() for typed in TYPED.finditer(text)]
    assert len(lines) > 2
    found = [(name, faults(typed[1], re.findall(r"-e (\w+)=", typed[2]))) for name, typed in lines]
    assert [(name, what) for name, what in found if what] == []


@pytest.mark.parametrize(
    "text",
    [
        "run the playbook reconcile",
        "(playbook hetero.compute.cabling says",
        "reconcile -e adopt=jackie takes",
        "run hetero.compute.proxy",
        "terminate_instance ends it",
    ],
)
def test_bare_names_are_seen(text):
    """The tests above would find everything right."""
    assert BARE.search(text)


def test_a_command_line():
    typed = play("reconcile", adopt="{name}", forget="bob")
    assert typed == "ansible-playbook hetero.compute.reconcile -e adopt={name} -e forget=bob"
    assert not BARE.search(typed)
    assert faults("reconcile", ["adpot"])
    assert faults("repair", [])
    assert faults("recocile", [])
