# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that a task gives as one value. If these fail, a node is asked for less than its play says."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.plugin_utils import asks


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (dict(asks=dict(instance="jackie"), state="running"), dict(instance="jackie", state="running")),
        (dict(asks={}, state="running"), dict(state="running")),
        (dict(asks=None), {}),
        (dict(asks="", state="running"), dict(state="running")),
        (dict(state="running"), dict(state="running")),
    ],
)
def test_they_are_options_like_others(given, options):
    asks.spread(given)
    assert given == options


@pytest.mark.parametrize("given", ["instance=jackie", "x" * 10**6, ["instance"], 7, True])
def test_what_names_no_options_is_refused(given):
    """Lost: what to change, to an error of Python's about a sequence."""
    with pytest.raises(AnsibleActionFail, match=r"^asks is .{1,300}: give options by name$"):
        asks.spread(dict(asks=given))
