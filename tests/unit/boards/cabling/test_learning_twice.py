# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board with power from elsewhere finds nothing to boot, and tries again every few minutes, as PCs' firmware does:
more seldom than `seconds`. If this fails, the one outlet during whose test it happens to ask is learned as its own, and
is switched for that board from then on, whatever else hangs there.
"""

from __future__ import annotations

import json
import time

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import learning
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning import learn, quick, verdicts

__all__ = ["quick"]


def test_one_request_by_itself_is_no_wiring(lab, monkeypatch):
    """Lost: the power of what is plugged in at that outlet later, cut for a board that never hung there."""
    lab.rack["pdu-a"].pop("3")  # board 9 has power from the wall
    asked, look = [], learning.Learning._look

    def meanwhile(self, finding):
        if finding.work.outlet == "4" and not asked:  # which feeds nothing that boots
            asked.append(9)
            path = lab.folder / "run" / "fake-boots" / "board9"
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_text(json.dumps({"on": time.monotonic() + 0.5, "boots": 2}))
            new.replace(path)
        look(self, finding)

    monkeypatch.setattr(learning.Learning, "_look", meanwhile)
    result = learn(lab, "pdu-a:3-4", "pdu-a:1")
    assert asked == [9]
    assert list(result["wiring"]) == [7]
    assert [verdict for *_where, verdict, _found in verdicts(result)] == ["nothing", "unsure", "found"]
    assert result["outlets"][1]["text"] == (
        "board9 asked to boot while pdu-a outlet 4 was on, and not once more by it: perhaps by itself; learn it again "
        "later"
    )
    assert "  # 9: no outlet was found that feeds board9" in result["lines"]
    assert lab.on == []
