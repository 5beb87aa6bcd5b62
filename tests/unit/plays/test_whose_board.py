# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose board `node=board3` is, by proxy=NAME. If these fail, a node that nobody named is asked."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.test_left_over import said


@pytest.mark.parametrize(
    ("playbook", "extra", "words"),
    [
        ("cabling", dict(node="board3", proxy="nope"), "proxy: the inventory has no proxy node nope: give one of p1"),
        ("console", dict(node="board3", proxy="gpu-2"), "proxy: the inventory has no proxy node gpu-2: give one of p1"),
        ("repair", dict(node="board3", proxy="proxies"), "proxy: the inventory has no proxy node proxies: give one of"),
        (
            "maintenance",
            dict(node="board4", proxy="localhost", state="on", reason="x"),
            "proxy: the inventory has no proxy node localhost: give one of p1, p2",
        ),
        (
            "maintenance",
            {"node": "board4", "proxy": "p2", "state": "off", "without": "p2"},
            "proxy is p2, which without leaves out: name another",
        ),
    ],
)
def test_whose_board_it_is_is_a_proxy_node(tmp_path, playbook, extra, words):
    """Lost: a verb, to any host that a slip names, the controller among them."""
    assert words in said(tmp_path, playbook, **extra)
