# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a request ended at a node. If these fail, a CI runs a job again that can never be given a board, or tells a
team of a failed test where a board failed.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.module import failed
from ansible_collections.hetero.compute.plugins.plugin_utils import endings
from ansible_collections.hetero.compute.plugins.plugin_utils.endings import of_all, of_node

NONE = failed(NoneFree("none free", rejected={"board0": ["in use"]}))
WRONG = failed(BadInput("has no image nope", "image"))
BOOT = dict(failed(HeteroError("stalled at tftp", "board0")), step="boot", blame="board")


@pytest.mark.parametrize(
    ("result", "ending"),
    [
        (NONE, endings.NONE),
        (WRONG, endings.REQUEST),
        (failed(Refused("belongs to bob", "lab")), endings.REQUEST),
        (BOOT, endings.BOOT),
        # claimed, and then the node had no room for its root
        (dict(NONE, step="image"), endings.BOOT),
        # a board in which somebody is at work
        (dict(failed(Refused("is locked", "board0")), step="boot"), endings.BOOT),
        (failed(HeteroError("is full", "/var")), endings.BOOT),
        (dict(failed=True, msg="broke off"), endings.BOOT),
        (dict(unreachable=True, msg="no route"), endings.OWNER),
    ],
)
def test_a_nodes_failure(result, ending):
    """Lost: what is to be done about it."""
    assert of_node(result) == ending


def test_of_several_nodes():
    """Lost: a board that failed, behind a node that has no such image."""
    assert of_all([WRONG, WRONG]) == endings.REQUEST
    assert of_all([WRONG, BOOT]) == endings.BOOT
