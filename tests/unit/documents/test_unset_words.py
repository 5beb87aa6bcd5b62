# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that AWX gives as empty where its survey was left unset: Ansible's `bool` warns of them, and is to fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
#: A default that an empty word does not get, and `bool` after it.
EMPTY = re.compile(r"default\(\s*\w+\s*\)\s*\|\s*bool")


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.rglob("*.yml")), ids=lambda path: path.name)
def test_an_empty_word_is_its_default(path):
    """Lost: the verb, with the Ansible that takes no empty truth any more; until then lines of a warning each time."""
    assert EMPTY.findall(path.read_text()) == []
