# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of boards over several exports: a number that one board had is given to no other.

Lost: a new machine gets the number of one that went, and with it on the proxy node the events, the proof of a wipe, and
the claim of a stopped instance of another machine.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, files, moved

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,id"


def numbers(tmp_path, *boards, **ids):
    """{name: number} of a table of these boards, and the notes."""
    rows = [f"j{n},00:1a:ca:00:58:9{n},10.0.2.{n + 2},x86_64,4,8192,0,{ids.get(f'j{n}', '')}" for n in boards]
    (tmp_path / "boards.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    result = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY}, replace=True)
    return {one["name"]: one["id"] for one in result["boards"]}, " ".join(result["notes"])


def test_a_number_that_one_had_is_given_to_no_other(tmp_path):
    assert numbers(tmp_path, 0, 1, 2)[0] == {"j0": 0, "j1": 1, "j2": 2}
    found, notes = numbers(tmp_path, 1, 2)
    assert found == {"j1": 1, "j2": 2}
    assert "board0, which no source has: left out" in notes
    assert numbers(tmp_path, 1)[0] == {"j1": 1}
    assert numbers(tmp_path, 1, 3)[0] == {"j1": 1, "j3": 3}
    assert numbers(tmp_path, 1, 3, 0)[0] == {"j0": 0, "j1": 1, "j3": 3}, "its row was left out for a while"
    text = (tmp_path / "site" / "files" / "boards").read_text()
    assert [line for line in text.splitlines() if "# board" in line] == [
        "# board2 was 00:1a:ca:00:58:92: no other board gets its number"
    ]


def test_a_number_that_a_table_changes_is_said(tmp_path):
    numbers(tmp_path, 0, 1)
    found, notes = numbers(tmp_path, 0, 1, j0=1, j1=0)
    assert found == {"j0": 1, "j1": 0}
    assert "j0 was board0, and is board1 by its id" in notes


def test_a_number_that_was_left_is_given_to_no_other(tmp_path):
    numbers(tmp_path, 0, 1)
    numbers(tmp_path, 0, 1, j0=7)
    assert numbers(tmp_path, 0, 1, 2, j0=7)[0] == {"j1": 1, "j2": 2, "j0": 7}
    assert numbers(tmp_path, 0, 1, 2)[0] == {"j1": 1, "j2": 2, "j0": 7}, "it keeps the last one"


def test_numbers_change_under_no_wiring_that_people_changed(tmp_path):
    """Lost: a neighbour's power: the wiring that stays has the outlets by the numbers of before."""
    numbers(tmp_path, 0, 1)
    path = tmp_path / "site" / "host_vars" / "proxy1.yml"
    path.write_text(path.read_text().replace("  0: {}", "  0: {pdu: pdu-a, outlet: 5}"))
    there = files(tmp_path / "site")
    with pytest.raises(Refused, match="wires board0, board1 as boards that are others now; nothing was written"):
        numbers(tmp_path, 0, 1, j0=1, j1=0)
    assert files(tmp_path / "site") == there


def test_a_number_by_a_word_is_ones_own_again(tmp_path):
    numbers(tmp_path, 0, 1)
    numbers(tmp_path, 1)
    assert numbers(tmp_path, 1, 2, j2=0)[0] == {"j1": 1, "j2": 0}
    (board, _other) = boards_file.read(tmp_path / "site" / "files" / "boards")
    assert board.mac.endswith("92")
