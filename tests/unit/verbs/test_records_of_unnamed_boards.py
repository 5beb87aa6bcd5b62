# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that lie in the place of a board that the boards file does not name. If these fail, what is printed leads
nowhere, or to the removal of another board's only record.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import on
from ansible_collections.hetero.compute.tests.unit.verbs.test_misplaced_maintenance import path, printed


def test_a_maintenance_there_has_a_command_that_brings_it_back(site):
    """Lost: the way out, where all that is said is that another board's text names it."""
    copy = site.copy_when_off()
    assert on(site)["changed"]
    path(site, 0).rename(path(site, 77))
    put_back(site, copy)
    said = reconcile(site)
    texts = [one["found"] for board in said["boards"] for one in board["found"]] + said["others"]
    commands = printed(site)
    assert commands, texts
    subprocess.run(["sh", "-ec", commands[0]], check=True, timeout=600)
    assert path(site, 0).exists()


def test_anothers_record_that_keeps_a_gone_board_from_removal_is_to_be_moved(jackie):
    """Lost: Carol's only record, which lies in the place of board 0, which is gone, where it is said to be removed."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    for name in ("jackie", "carol"):
        jackie.module("instance", kind="board", instance=name, state="stopped", timeout=3)
    record(jackie, 1).rename(record(jackie, 0))
    boards = Path(jackie.params["boards_file"])
    boards.write_text("".join(boards.read_text().splitlines(True)[1:]))
    with jackie.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims")
    text = reconcile(jackie, remove=["board0"])["msg"]
    command = text.split(f"run on {THIS_NODE}: ")[1].split(", or, where nobody has board1 any more")[0]
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert reconcile(jackie, remove=["board0"])["removed"]
    assert jackie.board_of("carol") == 1
