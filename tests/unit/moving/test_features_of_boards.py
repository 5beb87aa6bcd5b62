# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Features of Tilera boards, of which flavors ask: in the boards file that is there, in a table, or nowhere.

Lost: the board, to all flavors that ask for its grid or its hypervisor, where `replace=true` writes its line without.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions

LINE = (
    "7 10.0.2.1 00:1a:ca:00:57:90 10 16218 917 0 0 tilera_hv 1 "
    '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}\n'
)
TABLE = (
    "name,mac,ip,arch,vcpus,memory_mb,local_gb,vendor,model,disk\n"
    "t1,00:1a:ca:00:57:90,10.0.2.1,TILEPro64,10,16218,917,tilera,TILEmpower,none\n"
)


def test_what_the_boards_file_has_and_the_source_does_not_say_stays(tmp_path):
    path = tmp_path / "site" / "files" / "boards"
    path.parent.mkdir(parents=True)
    path.write_text(LINE)
    (tmp_path / "boards.csv").write_text(TABLE)
    result = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY}, replace=True)
    assert boards_file.read(str(path)) == boards_file.parse(LINE)
    assert ("t1", "features") not in questions(result)


def test_features_are_asked_and_taken(tmp_path):
    (tmp_path / "boards.csv").write_text(TABLE)
    asked = questions(moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY}))
    assert ("t1", "features") in asked
    head, row = TABLE.splitlines()
    (tmp_path / "boards.csv").write_text(f'{head},features\n{row},"8x8Grid, x"\n')
    asked = questions(moved(tmp_path / "site", "csv", tmp_path / "boards.csv", replace=True))
    (board,) = boards_file.read(str(tmp_path / "site" / "files" / "boards"))
    assert board.cpu_info["features"] == ["8x8Grid", "x"]
    assert ("t1", "features") not in asked
