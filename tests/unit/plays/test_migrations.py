# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance moves to another board, as its user types it. If these fail, they look for it where it is no more."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


@pytest.fixture
def plays(proxies):
    """Jackie runs on p2's board 0."""
    rc, output = proxies[1].play("provision_instance", instance="jackie", flavor=FLAVOR, proxy="p2", board="0")
    assert rc == 0, output
    return proxies[1]


def test_a_user_moves_an_instance_and_is_told_its_address(plays):
    """Lost: the way to an instance that has another address since."""
    rc, output = plays.play("migrate_instance", instance="jackie", node="board1")
    assert (rc, changed(output) > 0) == (0, True), output
    assert "TASK [Boot it in its new place]" in output
    assert "its root comes from board0, which is off" in output
    assert "board1  running   jackie has run before this" in output
    assert "adopted" not in output
    assert "jackie is running on board1: ssh root@" in output


def test_a_word_for_the_way_back_moves_nothing_that_has_a_board(plays):
    """Lost: an instance's power, and its address, to who wanted it back on its former board: it went to a third one."""
    rc, output = plays.play("migrate_instance", instance="jackie", back="true")
    assert "jackie has a board of p2, and back=true takes the move of a container or guest back" in output
    assert (rc, changed(output)) == (2, 0), output


@pytest.mark.long
def test_a_dry_run_and_one_that_is_there_already(plays):
    """Lost: what a dry run would do, and that nothing was done."""
    rc, output = plays.play("migrate_instance", "--check", instance="jackie")
    assert rc == 0, output
    assert "would be switched off, and its root exported to board1, which would boot it" in output
    assert "is running on" not in output
    rc, output = plays.play("migrate_instance", instance="jackie", board="board0")
    assert (rc, changed(output)) == (0, 0), output
    assert "jackie is running on board0: ssh root@" in output
