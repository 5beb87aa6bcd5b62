# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words over which new users stumbled stay out of the pages. If this fails, they stumble again."""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import PAGES, ROOT, guide

#: What was written once, and in what words it is said now.
STUMBLED = {
    "puts in what it needs": "installs what it needs",
    "There is no server to run": "No central server",
    "end of its console": "the last lines of its console log",
    "of which each ansible-core manages": "each ansible-core supports",
    "stood in for": "simulated",
    "so nothing else may": "stop the other servers first",
    "the blueprint's command": "name the blueprint, with a link",
    "each has its own words": "each gives its own message",
    "is not recognised, or you know better": "is not recognised, correct it",
    "a domain which is no more": "a deleted domain",
    "where the service, started as it is": "the file that the running service reads",
}
BLUEPRINT = "`HeterogeneousTileraSupport <https://wiki.openstack.org/wiki/HeterogeneousTileraSupport>`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_over_which_people_stumbled(path):
    text = " ".join(path.read_text().split())
    assert {words: say for words, say in STUMBLED.items() if words in text} == {}


@pytest.mark.parametrize("name", ["first_board", "moving_over"])
def test_the_blueprint_is_introduced_with_a_link(name):
    """Lost: what the page compares itself with, for who never heard of it."""
    text = guide(name)
    first = re.search(r"\S*HeterogeneousTileraSupport", text)
    assert text[first.start() :].startswith(BLUEPRINT) or text[first.start() - 1 :].startswith(BLUEPRINT)
