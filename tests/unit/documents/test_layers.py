# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate for imports (tests/layers.py) notices what it is there for."""

from __future__ import annotations

import shutil
from pathlib import Path

import layers
import pytest

ROOT = Path(__file__).resolve().parents[3]
#: What is broken → the file, the line that breaks it, and the words of the contract.
FAULTS = {
    "a driver that knows of boards": ("drivers/power/fake.py", "from ...boards.records import store", "The house"),
    "a record that switches power": ("boards/records/store.py", "from ..power import presence", "Boards"),
    "two files that need each other": ("core/errors.py", "from . import command", "No circle"),
    "a room that no contract names": ("storage/disks.py", "", "The house"),
}


@pytest.fixture
def house(tmp_path):
    """A copy of what the gate reads."""
    shutil.copytree(ROOT / layers.HOUSE, tmp_path / layers.HOUSE, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_house_as_it_is_is_in_order(house, capfd):
    """Else every fault below would pass as noticed."""
    assert layers.main(house, house) == 0, capfd.readouterr().out


@pytest.mark.parametrize("fault", FAULTS)
def test_an_import_that_goes_up_is_refused(house, capfd, fault):
    """Lost: the reader's way from what they look for down to what it stands on, one convenient import at a time."""
    path, line, contract = FAULTS[fault]
    file = house / layers.HOUSE / path
    file.parent.mkdir(exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + f"\n{line}\n")
    assert layers.main(house, house) != 0
    said = " ".join(capfd.readouterr().out.split())
    assert contract in said
    assert "BROKEN" in said or "storage" in said
