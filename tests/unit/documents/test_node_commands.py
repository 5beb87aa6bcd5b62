# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page on the commands of nodes. If it failed, an operator would type on a node what no command there knows."""

from __future__ import annotations

from importlib import import_module

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import hetero
from ansible_collections.hetero.compute.tools import node_commands


def test_the_page_says_what_the_commands_know():
    """Lost: a verb, an argument, or a unit that calls one, which the page does not have or no node has any more."""
    told = node_commands.PAGE.read_text()
    assert told == node_commands.page(), f"write the page anew: {node_commands.HOW}"
    assert [verb for verb in hetero.VERBS if f"\nhetero {verb}\n^^^" not in told] == []


@pytest.mark.parametrize("path", [".proxy.pdu_mgr", *hetero.VERBS.values()])
def test_each_command_and_argument_is_explained(path):
    """Lost: what an argument is for, on the page and to who asks with --help."""
    parser = import_module(path, hetero.__package__).parser()
    assert parser.description
    assert [action.dest for action in parser._actions if not action.help] == []
