# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for people: the keys that the progress display and users' own callbacks read."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.lines import line


def test_a_line_has_the_documented_keys():
    """Lost: progress, for whoever reads results by these keys."""
    assert line("jackie", "board3", "power", "is on", 1.5) == {
        "instance": "jackie",
        "node": "board3",
        "phase": "power",
        "text": "is on",
        "seconds": 1.5,
    }
    assert line(None, None, "queue", "waits")["seconds"] is None
