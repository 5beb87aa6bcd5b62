# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make figures`: what it counts, on a house of four files."""

from __future__ import annotations

import figures

HOUSE = f"{figures.UTILS}_hetero/"
FILES = {
    f"{HOUSE}a/one.py": "from ..b.two import g\n\n\ndef f(x: int) -> int:\n    return g(x)\n",
    f"{HOUSE}b/two.py": "from ...c import three\n\n\ndef g(a, b, c, d, e, f, g, h):\n    return 1\n",
    f"{HOUSE}b/c/four.py": "from ...a import one\n\n\nclass C:\n    def __init__(self, x: int):\n        self.x = x\n",
    f"{HOUSE}d/five.py": "from ..a.one import f\n\n\ndef h() -> int:\n    return f(1)\n",
    "tests/unit/a/test_one.py": '"""What it tells.\n\nTests b/c/four.py,\nd/five.py.\n"""\n\nfrom HOUSE.a import one\n',
    "tests/unit/d/test_all.py": '"""Tests d/five.py."""\n\nfrom HOUSE.d.five import f\n',
    "playbooks/p.yml": "- ansible.builtin.set_fact:\n    x: 1\n",
    "playbooks/tasks/t.yml": "- name: T\n  ansible.builtin.set_fact:\n    x: 1\n",
}
FILES = {
    path: text.replace("HOUSE", "ansible_collections.hetero.compute." + HOUSE.replace("/", ".").rstrip("."))
    for path, text in FILES.items()
}


def test_what_is_counted():
    """Lost: the truth of a page's figures, which come from here."""
    found = {**dict(figures.of_the_house(FILES)), **dict(figures.of_the_playbooks(FILES))}
    assert found["module_utils: files"] == 4
    assert (found["functions"], found["functions without types"]) == (4, 1)
    assert found["functions with more than 7 arguments"] == 1
    assert found["rooms in circles"] == "2 of 3", (
        "a takes from b, and a folder of b's from a; who takes from them does not"
    )
    assert (found["playbooks: files"], found["playbooks: set_fact tasks"]) == (2, 2)
    assert (found["playbooks/tasks: files"], found["playbooks/tasks: lines"]) == (1, 3)


def test_whose_tests_are_found():
    """Lost: the truth of how many files are tested where a reader looks, which mere claims would bend."""
    found = dict(figures.of_the_tests(FILES))
    assert found["files without a test of the same name"] == "3 of 4", "a/one.py has one"
    assert found["files that no test imports"] == "2 of 4", "a/one.py and d/five.py are imported"
    assert found["files whose test is not found"] == "2 of 4", "a/test_one.py names what it does not come near"
