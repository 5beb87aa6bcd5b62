# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word that was meant. If these fail, who mistypes one is shown another, or none."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.meant import meant


def test_the_nearest_of_the_known_words():
    """Lost: the word to type."""
    assert meant("instnace", ["instance", "flavor"]) == "instance"
    assert meant("instnace", {"instance": 1, "flavor": 2}) == "instance"
    assert meant("xyz", ["instance", 7]) == ""


def test_a_text_in_place_of_a_list_is_said():
    """Lost: letters, shown as words."""
    with pytest.raises(AnsibleFilterError, match="needs a list of known words"):
        meant("instnace", "instance")
