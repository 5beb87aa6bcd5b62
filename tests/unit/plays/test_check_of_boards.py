# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook check as it is typed. What it does on a board is in unit/boards/verbs/test_checks.py."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_idle_boards_are_found_and_others_are_named(tmp_path):
    """Lost: the check of all idle boards, to one without a RAM image; or why none is checked."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1, boards=2)
    try:
        plays = Playbooks(tmp_path, ["p1"])
        rc, none = plays.play("check")
        assert (rc, changed(none)) == (0, 0), none
        refused, named = plays.play("check", node="board1")
        assert refused == 2, named
    finally:
        proxy.remove()
    assert "no board can be checked: board0, board1: no RAM image is configured for architecture" in none, none
    assert none.count("no RAM image is configured") == 1, "what is the same of all boards is said once"
    assert "board1: is not checked: no RAM image is configured for architecture" in named, named
