# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured stands beside its goal. If this fails, a figure is lost, or a goal that was missed looks met."""

from __future__ import annotations

import json
import signal

import pytest

TERMINATED = signal.getsignal(signal.SIGTERM)
from ansible_collections.hetero.compute.bench import goals  # noqa: E402

signal.signal(signal.SIGTERM, TERMINATED)  # a measurement has one of its own
MET, SHOWN = "provision of 1: over its own boot", "a private root, beside cp -a"


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Two goals, and a place for what is measured."""
    monkeypatch.setattr(goals, "RECORDS", tmp_path / "logs" / "bench.jsonl")
    monkeypatch.setattr(goals, "GOALS", {MET: "≤ 1.0 s", SHOWN: None})
    monkeypatch.setattr(goals, "QUICK", False)
    return tmp_path / "logs" / "bench.jsonl"


@pytest.mark.parametrize(("met", "verdict"), [(True, "met"), (False, "MISSED"), (None, "")])
def test_a_goal_that_is_missed_is_told(records, capsys, met, verdict):
    goals.record(MET, "0.9 s", met)
    goals.record(SHOWN, "7 ms beside 800 ms")
    assert goals.main()
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(MET))
    assert line.split("  ")[-1].strip() == (verdict or "0.9 s")


def test_what_was_not_measured_is_told_and_no_success(records, capsys):
    goals.record(SHOWN, "7 ms beside 800 ms")
    assert not goals.main()
    assert "≤ 1.0 s                     not measured" in capsys.readouterr().out


def test_a_quick_run_tells_what_it_measured(records, capsys, monkeypatch):
    monkeypatch.setattr(goals, "QUICK", True)
    assert not goals.main()
    goals.record(SHOWN, "7 ms beside 800 ms")
    assert goals.main()
    assert MET not in capsys.readouterr().out
    assert goals.turns(5) == 1


def test_the_page_has_each_goal_with_the_machine(records, capsys):
    goals.record(MET, "2.1 s", False)
    goals.page()
    page = capsys.readouterr().out
    rows = f"   * - {MET}\n     - ≤ 1.0 s\n     - 2.1 s\n     - MISSED\n   * - {SHOWN}\n     -\n     - not measured\n"
    assert f"     - Measured\n     -\n{rows}" in page
    assert " processors (" in page
    assert json.loads(records.read_text()) == {"goal": MET, "measured": "2.1 s", "met": False}
