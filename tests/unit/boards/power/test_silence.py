# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a board that was switched off is looked at, by a clock that is played. Real looks are in
test_power_proof.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire


class Clock:
    """Time that passes by sleeping only."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(("dark", "signs"), [(2.0, []), (1e9, ["something answers at 10.0.2.1"])])
def test_a_power_supply_bridges_two_seconds_and_nobody_waits_ten(monkeypatch, dark, signs):
    """Lost: good boards kept out of use; or the patience of who stops one that another outlet feeds."""
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    work = SimpleNamespace(
        board=SimpleNamespace(ip="10.0.2.1"),
        driver=SimpleNamespace(alive=lambda board, limit: clock.now < dark),
        proxy=SimpleNamespace(wiring=lambda board: Wire()),
    )
    assert power_proof.Silence(work).life() == signs
    assert clock.now <= 10


@pytest.mark.parametrize(
    ("answers", "looks", "signs"),
    [
        ([False, False], 2, 0),
        # one lost packet is no silence
        ([False, True, False, False], 4, 0),
        ([True, False, False], 3, 0),
    ],
)
def test_a_board_is_silent_after_two_silent_looks(monkeypatch, answers, looks, signs):
    """Lost: a board that lives on is called off, for one packet that was lost; its disks go to the next tenant."""
    monkeypatch.setattr(deadline, "time", Clock())
    asked = list(answers)
    work = SimpleNamespace(
        board=SimpleNamespace(ip="10.0.2.1"),
        driver=SimpleNamespace(alive=lambda board, limit: asked.pop(0)),
        proxy=SimpleNamespace(wiring=lambda board: Wire()),
    )
    assert len(power_proof.Silence(work).life()) == signs
    assert len(answers) - len(asked) == looks
