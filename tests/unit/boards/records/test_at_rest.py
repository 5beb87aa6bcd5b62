# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is at rest by database and record of the claim, case by case. If this fails, what an instance at work runs from
is removed or moved; or boards at rest are refused for good.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.at_rest import is_at_rest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim, Kept


def claim(name="jackie", created=2.0, image_hash="hash"):
    return Claim(0, name, name, name, {}, "debian-12", "key", image_hash=image_hash, created=created)


JACKIE = claim()


@pytest.mark.parametrize(
    ("state", "power", "seen", "row", "kept", "rests"),
    [
        ("power off", "off", None, JACKIE, Kept(JACKIE, "power off"), True),
        ("power off", "off", None, JACKIE, None, True),
        ("shutting down", "on", "off", JACKIE, None, True),
        ("power off", "off", "on", JACKIE, None, False),
        ("power off", None, None, JACKIE, None, False),
        ("error", "off", "off", JACKIE, None, False),
        ("running", "off", "off", JACKIE, None, False),
        ("power off", "off", "off", JACKIE, Kept(JACKIE, "running"), False),
        ("power off", "off", "off", None, Kept(JACKIE, "booting"), False),
        ("power off", "off", "off", claim("eve", 1.0), Kept(JACKIE, "running"), False),
        ("power off", "off", "off", claim("eve", 3.0), Kept(JACKIE, "running"), True),
        ("power off", "off", "off", JACKIE, Kept(claim(image_hash=None), "running"), True),
    ],
)
def test_who_is_at_rest(state, power, seen, row, kept, rests):
    assert is_at_rest(Record(0, state, power=power, claim=row), kept, seen) is rests
