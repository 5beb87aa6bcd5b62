# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the house has in one place, and in no second one. If these fail, who changes it there changes half of it."""

from __future__ import annotations

import re

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

HOUSE = ROOT / "plugins" / "module_utils" / "_hetero"
#: The code of nodes and of plays, without the documentation of modules and filters.
CODE = [HOUSE, ROOT / "plugins" / "plugin_utils", ROOT / "plugins" / "action"]


def places(pattern, *folders):
    """The files in which a pattern occurs, in code or text."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    assert paths
    return [path.relative_to(ROOT / "plugins").as_posix() for path in paths if re.search(pattern, path.read_text())]


def test_a_board_leaves_its_claim_in_one_place():
    """Lost: a board that is given with somebody's data on its disk, by the one way out that does not look.

    A check's end frees a board that nobody has.
    """
    assert places(r"store\.release\((?!board\.id, None\))", HOUSE / "boards") == [
        "module_utils/_hetero/boards/evidence/free_boards.py"
    ]


def test_kinds_have_one_table():
    """Lost: a new kind of instance, to each table that its author did not find."""
    assert places(r"\bhypervisor_(lxc|kvm)\b", *CODE) == ["module_utils/_hetero/site/kinds.py"]
