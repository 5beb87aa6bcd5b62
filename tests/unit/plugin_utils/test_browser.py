# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page in a real browser. If these fail, it is blank, dark on dark, or runs what a tenant wrote."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.page.jinja import FOLDER
from ansible_collections.hetero.compute.tests.unit.plugin_utils.browser import measured, screenshot
from ansible_collections.hetero.compute.tests.unit.plugin_utils.page.test_page import HOSTILE, spoiled
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import lab, room

pytestmark = pytest.mark.long

STYLE = (FOLDER / "style.css").read_text()


def colour(name, dark):
    """A colour of the style sheet as the screen has it."""
    words = re.findall(rf"--{name}: #([0-9a-f]{{6}})", STYLE)[dark]
    return tuple(bytes.fromhex(words))


@pytest.mark.parametrize("dark", [False, True])
def test_the_screen_shows_each_state_and_phase(tmp_path, dark):
    """On screen are paper, text, and the colour of each state and of each phase of a boot, in light and in dark."""
    rows = screenshot(tmp_path, status_page(snapshots([lab(tmp_path / "lab").result()])), "lab", dark)
    count = Counter(pixel for row in rows for pixel in row)
    assert count.most_common(2)[0][0] in (colour("card", dark), colour("back", dark))
    for name in ("running-t", "booting-t", "leaving-t", "error-t", "away-t", "power", "tftp", "nfs", "login"):
        assert count[colour(name, dark)] > 400, name
    # text: a page without it has neither
    assert count[colour("ink", dark)] > 1000
    assert count[colour("ink", not dark)] < 100


def overlap(one, other):
    return (
        min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"]) > 1
        and min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"]) > 1
    )


@pytest.mark.parametrize("width", [500, 1320])
def test_200_boards_are_all_on_the_page(tmp_path, width):
    """Each board has a place of its own inside the page, readable, in the order of its outlets; nothing sticks out."""
    found = measured(tmp_path, status_page(snapshots([room(tmp_path / "room").result()])), width)
    cells = found["cells"]
    assert len(cells) == 200
    assert len({label["text"] for label in found["labels"]}) == 200
    assert all(cell["width"] >= 90 and cell["height"] >= 40 for cell in cells)
    assert all(cell["x"] >= 0 and cell["x"] + cell["width"] <= width for cell in cells)
    assert not any(overlap(one, other) for one, other in zip(cells, cells[1:]))
    assert [(cell["y"], cell["x"]) for cell in cells] == sorted((cell["y"], cell["x"]) for cell in cells)
    assert not any(label["over"] for label in found["labels"]), "a board's name is cut off"
    assert found["wide"] <= width, "the page is wider than its window"
    running = sum(cell["kind"] == "running" for cell in cells)
    assert len(found["bars"]) == running > 100
    assert len(found["pieces"]) == 4 * running
    assert all(piece["width"] >= 1 and piece["height"] >= 10 for piece in found["pieces"])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_browser_runs_nothing_of_it(tmp_path, text):
    """Even with scripts allowed, as they are for measuring, what a tenant wrote stays text and changes no layout."""
    result = dict(spoiled(lab(tmp_path / "lab").result(), text), item="proxy1")
    found = measured(tmp_path, status_page(snapshots([result])))
    assert found["title"] == "Boards"
    assert len(found["cells"]) == 10
    assert all(text in cell["text"] for cell in found["cells"])
    assert found["wide"] <= 1320
