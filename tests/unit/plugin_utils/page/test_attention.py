# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What needs a person. If these fail, an operator does not see a node that is down or a board out of use."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.page.attention import attention

WELL = dict(id=1, name="board1", proxy="p1", state="running", instance="jackie")


def look(boards=(), hosts=None, several=False, **snapshots):
    return attention(snapshots, list(boards), several, hosts or {})


def test_where_all_is_well_there_is_no_list():
    """Lost: an empty list that is taken for one that could not be made."""
    assert look([WELL], p1=dict(claims=[dict(board=1)])) is None


def test_a_proxy_that_gave_no_answer():
    """Lost: that all its boards are missing."""
    assert look(p1=dict(error="timed out\nafter 10 s", claims=[])).silent == [
        ("p1", ("timed out", "timed out\nafter 10 s"))
    ]


def test_a_board_out_of_use_with_the_end_of_its_console():
    """Lost: why, and what the board said last."""
    events = [
        dict(phase="error", text="early"),
        dict(phase="error", text="did not boot; console:\nline 1\nline 2"),
        dict(phase="power", text="off"),
    ]
    board = dict(WELL, state="error", since_seconds=120, pdu="a", outlet="3", note="no answer", events=events)
    [found] = look([board, WELL], several=True, p1=dict(claims=[])).ill
    assert (found.node, found.look, found.since, found.outlet) == ("p1 board1", "error", "2 min", "a outlet 3")
    assert (found.note.first, found.console) == ("no answer", "line 1\nline 2")
    [away] = look([dict(WELL, state="maintenance")], p1=dict(claims=[])).ill
    assert (away.node, away.look, away.outlet, away.console) == ("board1", "away", "-", "")


def test_a_claim_of_a_board_that_nobody_names():
    """Lost: an instance that runs where no verb reaches it."""
    claim = dict(board=7, name="board7", instance="jackie", owner="ann")
    [stray] = look([WELL], p1=dict(claims=[claim, dict(board=1)])).strays
    assert stray == ("board7", "p1", "jackie of ann has it, and the boards file does not name it")
    assert len(look([dict(WELL, id=7, proxy="p2")], p1=dict(claims=[claim])).strays) == 1, "another proxy's board 7"


def test_what_hosts_say():
    """Lost: a host that is down."""
    found = look(hosts=dict(gpu1=dict(gpus=[], instances=[], error="down"))).findings
    assert found == [("gpu1", "no answer", "", ("down", None))]
