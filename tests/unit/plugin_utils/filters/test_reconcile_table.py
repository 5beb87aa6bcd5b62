# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of reconcile. If these fail, an operator reads that something was mended which was not, or rows that a
terminal breaks anywhere.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.reconcile_table import reconcile_table

LONG = (
    "its outlet is off, and it runs jackie and shows its own key: nothing is switched: look at its plug (playbook "
    "hetero.compute.cabling says what the outlets of free boards feed)"
)


def board(number, *found, instance="jackie", ssh="own key"):
    found = [dict(found=text, done=done) for text, done in found]
    return dict(name=f"board{number}", recorded="running", instance=instance, power="on", ssh=ssh, found=found)


def table(*boards, others=(), **more):
    return reconcile_table([dict(boards=boards, others=list(others))], **more)


def test_a_short_finding_stands_in_its_row():
    assert table(board(0, ("missing: export", "put back")), board(1)) == [
        "NODE    RECORD   INSTANCE  OUTLET  SSH      FOUND            DONE",
        "board0  running  jackie    on      own key  missing: export  put back",
        "board1  running  jackie    on      own key  as recorded",
        "2 boards: 1 as recorded, 1 mended, 0 to look at",
    ]


def test_a_long_finding_stands_below_its_row():
    lines = table(board(0, (LONG, None), ("missing: export", "put back")), board(1), others=[f"folder {LONG}"])
    assert max(map(len, lines)) <= 100, "a terminal breaks it anywhere"
    assert lines[1] == "board0  running  jackie    on      own key"
    below = lines[2 : lines.index(next(line for line in lines if "missing: export" in line))]
    assert all(line.startswith("    ") for line in below)
    assert " ".join(" ".join(below).split()) == f"{LONG}: not touched"
    assert lines[0].index("FOUND") == next(line.index("missing: export") for line in lines if "missing" in line)


@pytest.mark.parametrize("say", [LONG, f"{LONG}: not touched"])
def test_a_finding_without_a_word_of_what_was_done_ends_without_a_colon(say):
    """Lost: whether a line goes on: it is read as one whose end was cut off."""
    text = f"{say}: not touched: its outlet is on: ansible-playbook hetero.compute.reboot_instance -e how=hard boots it"
    below = table(board(0, (text, None)))[2:-1]
    assert " ".join(" ".join(below).split()) == text


@pytest.mark.parametrize("check", [False, True])
def test_what_was_mended_counts_also_where_more_is_to_be_looked_at(check):
    """Lost: the word that anything was changed: "0 mended" of a record that was written anew."""
    lines = table(board(0, ("cannot be read", "written anew"), ("names no outlet yet", None)), board(1), check=check)
    assert lines[-1] == f"2 boards: 1 as recorded, 1 {'would be ' if check else ''}mended, 1 to look at"


def test_in_check_mode_nothing_was_mended():
    lines = table(
        board(0, ("missing: export", "would be put back")), board(1, ("recorded as off", "noted")), check=True
    )
    assert "would be put back" in lines[1]
    assert "would be noted" in lines[2]
    assert lines[-1] == "2 boards: 0 as recorded, 2 would be mended, 0 to look at"


def test_what_is_to_be_typed_stays_in_one_piece():
    """Lost: a command, which a shell ends where the line does; after && it goes on with the next line."""
    ways = ["mkdir -p /var/lib/hetero/backups/aside", "mv --backup=numbered /var/lib/hetero/state.db* /var/lib/x/"]
    ways.append("cp -p /var/lib/hetero/backups/state-20261122T130000Z.db /var/lib/hetero/state.db")
    text = f"a row of that board is damaged: run on node proxy1: {' && '.join(ways)} and then, elsewhere: more"
    lines = table(board(0, (text, None)))
    assert all(any(way in line for line in lines) for way in ways), lines
    assert not any(line.strip().startswith("&&") for line in lines)


def test_one_board_is_one():
    assert table(board(0))[-1] == "1 board: 1 as recorded, 0 mended, 0 to look at"


def test_what_is_of_no_board_is_to_be_looked_at():
    """Lost: a claim whose board's row is gone, below a sum that says that all is well."""
    lines = table(board(0), board(1), others=["claim of jackie", "export 7"])
    assert lines[-1] == ("2 boards: 2 as recorded, 0 mended, 0 to look at; 2 of no board in the boards file")
    assert table(others=["claim of jackie"])[-1] == "1 of no board in the boards file"
    guest = dict(board(0), kind="lxc")
    host = dict(item="gpu1", instances=[guest], others=["container x of /var/lib/lxc, of no instance"], domains=[])
    assert reconcile_table([], [host])[-1].endswith("0 to look at; 1 without a claim")
