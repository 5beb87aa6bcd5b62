# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a request that goes away while it waits. Lost if this fails: the login, to another's key."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.sound import sound


def test_what_has_no_problem_is_taken_as_it_is():
    assert sound(dict(text="x", problem="")) == dict(text="x", problem="")


def test_what_has_one_is_used_for_nothing():
    with pytest.raises(AnsibleFilterError, match=r"first\.yml cannot be read"):
        sound(dict(text="", problem="user_data: first.yml cannot be read"))


@pytest.mark.parametrize("read", [None, "text", {}, dict(text="x")])
def test_what_says_nothing_of_problems_is_an_error(read):
    with pytest.raises(AnsibleFilterError, match="needs a mapping with problem"):
        sound(read)
