# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record of a board's being out of use that lies in another board's place. If these fail, a board is out of use, or
given away, for what was said of another one.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import maintenance, reconcile

REASONS = ["its fan rattles", "its flash is worn"]


def path(site, board):
    return site.state / "maintenance" / f"board{board}.json"


def reasons(site):
    return [json.loads(path(site, board).read_text())["reason"] for board in range(2)]


def found(site, board):
    return [(one["found"], one["done"]) for one in reconcile(site)["boards"][board]["found"]]


def not_its(site, board):
    other = 1 - board
    return f"{path(site, board)} is a record of board{other}, not of board{board}, and nothing of it is believed"


@pytest.fixture
def swapped(site):
    """Two boards in maintenance, with each other's records, and a copy of the database from before."""
    copy = site.copy_when_off()
    for board, reason in enumerate(REASONS):
        assert maintenance(site, "on", board, reason=reason)["changed"]
    texts = [path(site, board).read_text() for board in range(2)]
    for board, text in enumerate(reversed(texts)):
        path(site, board).write_text(text)
    return site, copy


def test_swapped_records_are_said_and_one_command_puts_them_right(swapped):
    """Lost: why a board is out of use, at the first database that is put back."""
    site, _copy = swapped
    ways = []
    for board, reason in enumerate(REASONS):
        first, second = found(site, board)
        assert first[0].startswith(f"{not_its(site, board)}: ")
        assert second[0].startswith(f"kept out of use (maintenance: {reason}): ")
        assert (first[1], second[1]) == (None, None)
        assert not_its(site, board) in site.module("board_info")["boards"][board]["note"]
        ways.append(first[0][len(not_its(site, board)) + 2 :])
    assert reasons(site) == REASONS[::-1]
    assert ways[0].startswith("run on ")
    assert ways[1] == "what is said of board0 brings it to its place", "a second command would take it back"
    subprocess.run(["sh", "-ec", ways[0].partition(": ")[2]], check=True, timeout=600)
    assert reasons(site) == REASONS
    assert len(found(site, 0)) == len(found(site, 1)) == 1


def test_of_an_older_database_nothing_is_believed_and_nobody_gets_the_board(swapped):
    """Lost: the open board under an operator's hands; or the reason of the other board, to the end of this one's."""
    site, copy = swapped
    put_back(site, copy)
    site.pdu(board0="on")
    ((text, done),) = found(site, 0)
    assert (text.startswith(not_its(site, 0)), done) == (True, None)
    assert (site.record(0).state, site.outlets()["1"]) == ("power off", "on")
    (claimed, *_others) = site.provision()
    assert not_its(site, 0) in claimed["msg"]
    site.pdu(board0="off")
    assert maintenance(site, "off")["changed"]
    assert not path(site, 0).exists()
    (kept,) = path(site, 0).parent.glob("board0.json.of-board1.*")
    assert json.loads(kept.read_text())["reason"] == REASONS[1]
    assert site.provision()[0]["boards"][0]["board"] == 0


@pytest.mark.parametrize("copied", [False, True], ids=["its only record", "a copy of it"])
def test_the_end_of_a_maintenance_takes_anothers_record_out_of_its_boards_place(swapped, copied):
    """Lost: the board, out of use for good by what was said of another one; or the other one's only record."""
    site, _copy = swapped
    if copied:
        path(site, 1).write_text(path(site, 0).read_text())
    assert maintenance(site, "off")["changed"]
    assert not path(site, 0).exists()
    others = [path(site, 1)] if copied else [*path(site, 0).parent.glob("board0.json.of-board1.*")]
    assert [*path(site, 0).parent.iterdir()] == others
    assert [json.loads(other.read_text())["reason"] for other in others] == [REASONS[1]]
    assert site.provision()[0]["boards"][0]["board"] == 0


def test_a_board_of_a_tenant_is_not_kept_from_her_by_anothers_record(jackie):
    """Lost: each start of her instance, to what was said of another board."""
    assert maintenance(jackie, "on", 1, reason=REASONS[1])["changed"]
    path(jackie, 0).write_text(path(jackie, 1).read_text())
    assert [text for text, _done in found(jackie, 0)] == [f"{not_its(jackie, 0)}: board1 has its own: remove this one"]
    assert not any(result.get("failed") for result in jackie.reboot())


def test_a_record_of_an_earlier_release_names_no_board_and_is_its_places(site):
    """Lost: the reason of each board out of use, at the update."""
    assert maintenance(site, "on", reason=REASONS[0])["changed"]
    kept = json.loads(path(site, 0).read_text())
    assert kept.pop("board") == 0
    path(site, 0).write_text(json.dumps(kept))
    assert [text.partition(": ansible")[0] for text, _done in found(site, 0)] == [
        f"kept out of use (maintenance: {REASONS[0]})"
    ]
