# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot drivers that a site wrote itself: files on the node, beside a collection that is as it was installed.

Tests drivers/boot/own_drivers.py, drivers/boot/registry.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import own_drivers, registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import words_check
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named

BOARD = SimpleNamespace(id=0, name="board0", ip="10.0.2.1", cpu_info={})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The node's folder of such drivers, with the guide's, as the guide names it."""
    own = tmp_path / "boot_drivers"
    own.mkdir(mode=0o755)
    (variable,) = yaml.safe_load(named(guide("boot_driver"), "own-boot-driver")).values()
    for name in variable:
        (own / f"{name}.py").write_text(named(guide("boot_driver"), "boot-driver"))
    monkeypatch.setattr(registry, "OWN_FOLDER", str(own))
    return own


def drivers(wanted):
    """The drivers of a call on a node whose wiring names this one for its board."""
    wiring = SimpleNamespace(driver=wanted, cmdline=None)
    return registry.BootDrivers(SimpleNamespace(wiring=lambda board: wiring))


def test_the_guides_driver_boots_a_board_as_it_stands(folder):
    """Lost: boards of a site's own kind, to who will not keep a fork of the collection for them."""
    driver = drivers("sd_card").of(BOARD)
    assert (driver.name, driver.flash, driver.files(BOARD), driver.passes_arguments) == ("sd_card", True, {}, False)
    with pytest.raises(
        BadInput, match=r"board0: no such boot driver: sdcard \(known: .*, sd_card, "
    ):
        drivers("sdcard").of(BOARD)


def test_a_file_that_is_none_keeps_no_set_up_from_bringing_a_right_one(folder):
    """Lost: the way out, for the set-up looks at the wiring before it writes the corrected file."""
    (folder / "sd_card.py").write_text("def (")
    assert registry.proves_keys({"driver": "sd_card"}, None) is True
    with pytest.raises(BadInput, match=r"boot_drivers/sd_card\.py: is no Python of node .+: line 1"):
        drivers("sd_card").of(BOARD)


def test_a_file_that_must_not_be_run_keeps_no_other_board_from_anybody(folder):
    """Lost: the status of a node, and every request to it, to one file that its group may write."""
    (folder / "sd_card.py").chmod(0o664)
    assert drivers("sd_card").means(BOARD) is None
    with pytest.raises(HeteroError, match="others may write to it"):
        drivers("sd_card").of(BOARD)
    (folder / "sd_card.py").unlink()
    (folder / "sd_card.py").symlink_to(folder / "away")
    assert drivers("sd_card").means(BOARD) is None
    with pytest.raises(HeteroError, match="is a link, and no driver is loaded by one"):
        drivers("sd_card").of(BOARD)


def test_one_that_cannot_be_made_is_its_boards_error(folder):
    """Lost: the same, to a KeyError."""
    text = (folder / "sd_card.py").read_text()
    broken = "    def __init__(self, proxy):\n        raise KeyError('card')\n\n"
    made = text.replace("    flash = ", f"{broken}    flash = ", 1)
    assert made != text
    (folder / "sd_card.py").write_text(made)
    assert drivers("sd_card").means(BOARD) is None
    with pytest.raises(BadInput, match=r"board0: its boot driver sd_card broke off \(KeyError: 'card'\): correct "):
        drivers("sd_card").of(BOARD)


def test_a_look_that_never_returns_tells_what_keeps_power_and_is_asked_once(folder, monkeypatch):
    """Lost: the status of all boards of a node; or a tenant's power, to a board that nobody can look at."""
    monkeypatch.setattr(own_drivers, "LOOK", 0.3)
    text = (folder / "sd_card.py").read_text()
    does = "open({!r}, 'a').write('x')\n        __import__('threading').Event().wait(600)"
    looks = f"    def has_root(self, board):\n        {does}\n"
    counted = folder.parent / "looks"
    (folder / "sd_card.py").write_text(f"{text}\n{looks.format(str(counted))}")
    driver = drivers("sd_card").of(BOARD)
    assert driver.has_root(BOARD)
    assert driver.has_root(BOARD)
    assert driver.alive(BOARD, 1.0), "which is not asked any more"
    assert counted.read_text() == "x"
    assert "sd_card broke off (NeverReturned: has_root did not return within 0.3 s)" in str(driver.fault(BOARD))


def test_the_set_up_knows_their_names():
    """Lost: a set-up that takes the wiring of such boards."""

    def defects(*own):
        found = Findings()
        words_check.boot_driver("board 0", {"driver": "sd_card"}, found, own)
        return len(found.defects)

    assert (defects(), defects("sd_card")) == (1, 0)
