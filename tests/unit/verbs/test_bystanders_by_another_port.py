# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring calls one PDU by two names, by telnet and by its web port, or by address and by a host name that no name
server knows just now; power/pdu_names.py says that they may be one. If this fails, carol's board, which is wired by the
other name, stays dark where jackie's stop cut it by a swapped plug, and the stop is told as done.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, plugs

__all__ = ["hasty"]


@pytest.mark.parametrize(
    "other",
    [dict(), dict(port=80), dict(port=8080), dict(host="pdu.lab.invalid")],
    ids=["one spelling", "web port", "another web port", "a name that is not known just now"],
)
def test_who_may_be_wired_by_the_other_name_has_her_power_back(site, other):
    """Lost: carol's power."""
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    one = dict(config["pdus"]["pdu-a"], host="10.0.2.100")
    config["pdus"] = {"pdu-a": one, "pdu-b": dict(one, **other)}
    config["boards"]["1"]["pdu"] = "pdu-b"
    path.write_text(json.dumps(config))
    assert pdu_names.may_be_same(pdu_names.address(one), config["pdus"]["pdu-b"])
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in site.provision(name))
    plugs(site, True)
    hangs(site, 0)
    result = site.module("instance", timeout=10, **STOP)
    assert lives(site, 1), (result.get("failed"), told(result))
