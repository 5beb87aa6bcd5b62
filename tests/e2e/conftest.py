# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole system, from outside: the playbooks on a lab of this run's own, as a user types them.

One lab for all of these tests; each test ends with no instance left.
"""

from __future__ import annotations

import pytest
from labs import ROOT, Lab
from turns import DAY, mark_other_days

FOLDER = ROOT / "build" / "lab" / "e2e"


def pytest_report_header():
    return f"HETERO_DAY={DAY} runs the tests again whose day it is"


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    # forty seconds of a processor each; each second day is one of this stage (runner/plan.py)
    mark_other_days(items, 5, "long")


@pytest.fixture(scope="session")
def up():
    lab = Lab(FOLDER)
    lab.play("lab_down")
    try:
        lab.play("lab_up")
        lab.play("proxy")
        yield lab
    finally:
        lab.play("lab_down")


@pytest.fixture
def lab(up):
    """The lab with all boards free, none better than another; checks afterwards that a test left none claimed."""
    yield up
    info = up.module("board_info", power=True)
    if info["claims"]:
        for claim in info["claims"]:
            up.terminate(claim["instance"])
        info = up.module("board_info", power=True)
    up.forget_failures()
    for board in info["boards"]:
        if board["state"] == "error":  # one that a failed test left fails no other test
            up.play("repair", node=board["name"])
    assert {(board["state"], board["power"]) for board in info["boards"]} == {("power off", "off")}
