# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board whose root, or image, was removed between two steps of a play. If these fail, it gets power for nothing, and
is kept out of use as if it were broken.
"""

from __future__ import annotations

import shutil

from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import IMAGE


def test_a_board_whose_root_is_gone_gets_no_power(site):
    """A terminate came between the making of its root and its start."""
    site.claim(0)
    shutil.rmtree(site.folder / "state" / "board-roots" / "fs_0")
    result = site.run("start", 0)
    assert "board0: has no root for vm0 any more, it was removed meanwhile: make it ready: board_image" in result["msg"]
    assert (site.record(0).state, site.record(0).power) == ("power off", None)


def test_a_board_whose_image_is_gone_gets_no_power(site):
    """Lost: why it does not start, to a traceback; it would ask for a kernel that is nowhere."""
    site.claim(0)
    shutil.rmtree(site.folder / "state" / "images" / IMAGE)
    result = site.run("start", 0)
    assert result["failed"]
    assert IMAGE[:12] in result["msg"]
    assert (site.record(0).state, site.power(0)) == ("power off", "off")
