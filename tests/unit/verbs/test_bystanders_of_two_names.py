# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring calls one PDU by two names, with two spellings of its address, which power/pdu_names.py knows to be one.
If this fails, carol's board, which is wired by the other name, stays dark where jackie's stop cut it by a swapped plug,
and the stop is told as done.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, plugs

__all__ = ["hasty"]


@pytest.mark.parametrize(
    "other",
    [dict(host="10.0.2.100"), dict(host="::ffff:10.0.2.100"), dict(host="10.0.2.100", port=161)],
    ids=["one spelling", "two spellings", "another port of its own"],
)
def test_who_is_wired_by_the_other_name_has_her_power_back(site, other):
    """Lost: carol's power."""
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    one = config["pdus"]["pdu-a"]
    config["pdus"] = {"pdu-a": dict(one, host="10.0.2.100"), "pdu-b": dict(one, **other)}
    config["boards"]["1"]["pdu"] = "pdu-b"
    path.write_text(json.dumps(config))
    assert set(pdu_names.devices(config["pdus"]).values()) == {"pdu-a"}, "they are one"
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in site.provision(name))
    plugs(site, True)
    hangs(site, 0)
    result = site.module("instance", timeout=10, **STOP)
    after = reconcile(site)
    assert lives(site, 1), (result.get("failed"), told(result), told(after))
