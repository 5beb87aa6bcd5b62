# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cabling check of a free board, where nobody knows any more what fed another board."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import stop


def lose(site, how):
    record = site.state / "claims" / "board0.json"
    if how == "lost":
        record.unlink()
    else:
        record.write_text("{")


def checked(site):
    (board,) = site.module("board_cabling", boards=[1], timeout=2)["boards"]
    return board, [event.text for event in site.events(1, "switch")]


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_an_outlet_that_may_be_a_stopped_board_s_is_not_tested(jackie, how):
    """Lost: jackie's peace: the board that she stopped comes up, by a check of one that nobody has."""
    assert not stop(jackie).get("failed")
    lose(jackie, how)
    jackie.wire(1, outlet="1")
    board, switched = checked(jackie)
    assert (board["verdict"], switched, jackie.outlets()["1"]) == ("skipped", [], "off")
    assert "pdu-a outlet 1, which may feed jackie on board0: the record of what feeds it is lost" in board["text"]
    assert "tested while it runs and shows its key" in board["text"]
    assert "reconcile -e adopt=jackie" in board["text"]


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_an_outlet_that_is_off_is_none_of_a_board_that_runs(jackie, how):
    """Lost: the check of all free boards of a node, for the one lost record of a board that runs."""
    lose(jackie, how)
    board, switched = checked(jackie)
    assert board["verdict"] != "skipped"
    assert [text.split(" outlet 2 ")[1][:18] for text in switched] == ["is to be switched ", "was switched off a"]
    assert jackie.outlets()["1"] == "on"
