# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots that the inventory reads. If these fail, an old snapshot counts as what is so now, or a GPU that somebody
has as free.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.snapshots import devices, gpus, states

GPU = dict(address="0000:01:00.0", healthy=True, holder=None)


def text(taken_at=None, **said):
    return json.dumps(dict(said, taken_at=time.time() if taken_at is None else taken_at))


def iso(seconds, zone=timezone.utc):
    return datetime.fromtimestamp(time.time() - seconds, zone).isoformat()


@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=9))])
def test_an_old_snapshot_says_nothing_of_boards(zone):
    """Lost: a board, which is said to be free by what was so an hour ago."""
    board = dict(id=3, state="running")
    assert states(text(iso(50, zone), boards=[board]), 60) == {"3": board}
    assert states(text(iso(70, zone), boards=[board]), 60) == {}
    assert states(text(iso(-70, zone), boards=[board]), 60) == {}, "from the future"
    assert states(text(iso(9999), boards=[board]), 0) == {"3": board}


def test_a_time_without_a_zone_and_with_z_is_utc():
    """Lost: the age, by the hours of the controller's zone."""
    plain = iso(50).replace("+00:00", "")
    for said in (plain, plain + "Z", plain + "z"):
        assert states(text(said, boards=[dict(id=1)]), 60) != {}


def test_an_old_snapshot_tells_which_gpus_there_are_and_not_whose():
    """Lost: the same of GPUs."""
    seen = [GPU, dict(GPU, address="0000:02:00.0", holder="c1"), dict(GPU, address="0000:03:00.0", unsupported="cut")]
    young = gpus(text(gpus=seen, instances=[], capacity={}), 60)
    assert (young["gpus_total"], young["gpus_free"], young["instances"]) == (2, 1, [])
    old = gpus(text(iso(70), gpus=seen, instances=[], capacity={}), 60)
    assert (old["gpus_total"], old["gpus_free"], old["instances"], old["capacity"]) == (2, None, None, None)
    assert [one["holder"] for one in old["gpus"]] == ["unknown"] * 3
    assert gpus(text(gpus=[], error="no answer"), 60) == {}


@pytest.mark.parametrize("said", ["[]", "{}", '{"boards": 1}', '{"boards": [1]}', '{"boards": [{"name": "a"}]}'])
def test_what_is_no_snapshot_is_refused(said):
    """Lost: why the inventory has no boards."""
    with pytest.raises(ValueError, match=r'is not {"taken_at": ..., "boards"'):
        states(said, 60)
    with pytest.raises(ValueError, match="has no taken_at"):
        states(json.dumps(dict(boards=[], taken_at=True)), 60)


def test_a_card_that_is_for_guests_counts_once():
    """Lost: a card, counted as a GPU and as a device."""
    card = dict(address="0000:01:00.0", alias="a1")
    other = dict(address="0000:02:00.0")
    assert devices(dict(gpus=[GPU, other], devices=[card])) == [other, card]
    assert devices(dict(gpus=[GPU])) == [GPU]
