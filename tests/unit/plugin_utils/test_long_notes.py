# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long notes in the table of status. If these fail, a terminal breaks a line of 570 characters anywhere, and nobody
sees which row is whose, or what to type.

Tests plugin_utils/columns.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.columns import INDENT, WIDTH
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import WIDEST, status_table

TYPED = "ansible-playbook hetero.compute.reconcile -e adopt=jackie"
LONG = (
    "its wiring names pdu-a outlet 3, which may feed carol on board1: the record of what feeds it is lost or cannot be "
    f"read: once it is known that the wiring is right, type {TYPED}; and this goes on for some more words"
)


def board(number, note="", lease=None):
    return dict(
        name=f"board{number}", arch="TILEPro64", state="running", instance="jackie", since_seconds=130.0, note=note,
        lease_seconds=lease, vcpus=1, memory_mb=1, local_gb=1, cpu_info={},
    )  # fmt: skip


@pytest.mark.parametrize("lease", [None, 7200.0])
def test_a_long_note_stands_below_its_row(lease):
    heading, first, *below, last = status_table([board(0, LONG, lease), board(1, "short")])
    assert max(map(len, [heading, first, last])) <= WIDEST
    assert max(map(len, below)) <= WIDTH
    assert first.split("  ")[-1] == ("2 min" if lease is None else "lease 2 h left")
    assert all(line.startswith(INDENT) for line in below)
    assert " ".join(line.strip() for line in below) == LONG
    assert any(TYPED in line for line in below), "what is to be typed is in one piece"
    assert last.endswith("  short")
    assert last.index("short") == heading.index("NOTE")


def test_a_lease_stays_in_a_row_without_room():
    """The table of a site with long names came out without its leases, or not at all."""
    rows = [board(0, None, 7200.0), board(1, "short")]
    _heading, first, second, below = status_table([dict(one, arch="A" * WIDEST) for one in rows])
    assert first.endswith("  lease 2 h left")
    assert (second.split()[-1], below) == ("min", f"{INDENT}short")


def test_a_long_note_of_a_hosts_instance_stands_below_its_own_row():
    instances = [
        dict(instance=name, since_seconds=130.0, gpus=["0000:05:00.0"], state=state, note=LONG)
        for name, state in (("ml-7", "error"), ("ml-8", "running"))
    ]
    host = dict(error=None, gpus=[], hypervisors=["LXC"], unsupported=None, instances=instances)
    _heading, first, *below, last = status_table([], hosts={"gpu1": host})
    assert max(map(len, below)) <= WIDTH
    assert "ml-7" in first
    assert " ".join(line.strip() for line in below) == f"0000:05:00.0; error: {LONG}"
    assert last.split() == ["ml-8", "-", "-", "-", "2", "min", "0000:05:00.0"]


def test_a_board_that_failed_lately_is_seen():
    """Lost: which board to look at, before the next request fails on it."""
    failed = dict(score=75, passed=15, of=20, failures=[], check=None)
    rows = [
        dict(board(0), health=failed),
        dict(board(1, "found off"), health=failed),
        dict(board(2), health=dict(score=100)),
        dict(board(3, "stalled at tftp"), state="error", health=failed),
        dict(board(4), health=dict(failed, score=100, passed=20)),
        board(5),
    ]
    _heading, *lines = status_table(rows)
    said = [line.split("2 min", 1)[1].strip() for line in lines]
    seen = "health 75: 5 of 20 failed"
    assert said == [seen, f"found off; {seen}", "", "stalled at tftp", "", ""]


def test_a_score_has_no_row_of_its_note():
    """Lost: that a board was stopped, in the row where everybody looks for it, where it also failed lately."""
    failed = dict(score=86, passed=6, of=7, failures=[], check=None)
    stopped = dict(board(0, "stopped"), health=failed, lease_seconds=None)
    room = dict(stopped, image="debian-12-with-all-that")
    _heading, beside = status_table([stopped])
    assert beside.endswith("2 min  stopped; health 86: 1 of 7 failed")
    _heading, row, below = status_table([room])
    assert row.endswith("2 min  stopped")
    assert below.strip() == "health 86: 1 of 7 failed"
