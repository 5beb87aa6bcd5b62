# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies beside a root's parts. If these fail, another root that a person laid there goes with this one."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.root_folder import must_hold_only

PARTS = ("upper", "work", "made.json")


def test_a_roots_parts_and_what_a_killed_writer_left_may_go(tmp_path):
    """Lost: terminate, where a write was cut off."""
    for name in ("upper", "work", "lost+found"):
        (tmp_path / name).mkdir()
    for name in ("made.json", ".made.json.a8f3"):
        (tmp_path / name).write_text("{}")
    must_hold_only(str(tmp_path), PARTS)


@pytest.mark.parametrize("name", ["fs_2", "made.jsonx", ".made.json", "upper.old", "madexjson"])
def test_anything_else_is_somebodys(tmp_path, name):
    """Lost: another root, which was moved there."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "etc").mkdir()
    with pytest.raises(Refused, match="which is no part of a root and would go with it: it is not removed"):
        must_hold_only(str(tmp_path), PARTS)
