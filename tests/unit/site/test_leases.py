# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends of leases. If these fail, an hour that a user asked for is not given, or each run of a play says `changed`.

Tests site/instance.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import leases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import left

NOW = 1_700_000_000.0


@pytest.mark.parametrize("later", [0, 59, -59])
def test_the_same_play_twice_in_a_row_changes_nothing(later):
    old = NOW + 3600
    assert leases.end(1, old, NOW + later) == old


@pytest.mark.parametrize("later", [61, 300, 3600, -61])
def test_what_is_more_than_a_minute_longer_is_given(later):
    assert leases.end(1, NOW + 3600, NOW + later) == NOW + later + 3600


def test_no_hours_are_no_end():
    assert leases.end(0, NOW + 3600, NOW) is None
    assert leases.end(2, None, NOW) == NOW + 7200


@pytest.mark.parametrize(("hours", "endless"), [(0, False), (-1, True), (87601, True), (float("nan"), True)])
def test_what_is_no_lease_is_refused(hours, endless):
    with pytest.raises(BadInput, match="87600"):
        leases.must_be_hours(hours, "hours", endless)
    leases.must_be_hours(87600, "hours")
    leases.must_be_hours(0, "hours", endless=True)


EXTEND = "ansible-playbook hetero.compute.extend_instance -e instance=jackie -e hours="


@pytest.mark.parametrize(
    ("hours", "old", "words"),
    [
        (5, NOW + 60, f"1 min left; {EXTEND}5 makes it longer"),
        (0.5, NOW + 3600, f"1 h left; {EXTEND}0.5 makes it shorter"),
        (0, NOW + 3600, f"1 h left; {EXTEND}none makes it longer"),
        (24, None, f"keeps its lease: no end; {EXTEND}24 makes it shorter"),
    ],
)
def test_a_lease_that_is_kept_is_said_with_what_changes_it(hours, old, words):
    """Lost: the root of who asks for more hours of an instance that is there."""
    told = leases.kept("jackie", hours, old, NOW)
    assert told.startswith("keeps its lease: ")
    assert told.endswith(words)


@pytest.mark.parametrize(("hours", "old"), [(None, NOW + 60), (1, NOW + 3600), (0, None), (1, NOW - 1)])
def test_a_lease_that_is_as_asked_for_or_over_is_no_news(hours, old):
    assert leases.kept("jackie", hours, old, NOW) is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3 * 3600 - 20, "3 h left"),
        (2 * 3600 - 90, "1 h 59 min left"),
        (3600, "1 h left"),
        (3500, "59 min left"),
        (41, "41 s left"),
        (4 * 86400 + 4 * 3600, "4 d 4 h left"),
        (86400 + 600, "1 d left"),
        (-125, "over since 2 min"),
    ],
)
def test_what_is_left_of_a_lease_is_not_told_as_half_of_it(seconds, said):
    """Lost: an hour, to whom two were given a minute ago: `1 h left`."""
    assert left(seconds) == said
