# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tour against the playbooks' own words, as far as no lab is needed; tests/e2e/test_tour.py runs all of it."""

from __future__ import annotations

import pytest
import yaml
from jinja2 import Environment

from ansible_collections.hetero.compute.plugins.plugin_utils import handover
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, session

BOARD = {"instance": "anna-1", "name": "board1", "until": "until 2026-11-21 18:31 UTC, 1 d left"}


def said(playbook, **variables):
    """The lines that a playbook ends with."""
    plays = yaml.safe_load((ROOT / "playbooks" / f"{playbook}.yml").read_text())
    tasks = [task for play in plays for task in play.get("tasks", [])]
    task = next(task for task in tasks if task["name"] == "Say how it stands")
    if "hetero.compute.hand_over" in task:
        return getattr(handover, task["hetero.compute.hand_over"]["says"])(**variables)
    words, lines = Environment(autoescape=False), task["hetero.compute.show"]["lines"]
    return [words.from_string(line).render(**variables) for line in lines]


@pytest.mark.parametrize(
    ("playbook", "variables"),
    [
        ("stop_instance", {"instance": "jackie", "_all_claims": [{"name": "board0"}]}),
        ("extend_instance", {"instances": [BOARD]}),
    ],
)
def test_what_the_tour_shows_is_what_is_said(playbook, variables):
    """A newcomer compares the two, and takes each difference for a failure of their own."""
    (command,) = [command for command in session(guide("tour")) if f"hetero.compute.{playbook} " in command.line]
    assert [line for line in command.output if line in said(playbook, **variables)]
