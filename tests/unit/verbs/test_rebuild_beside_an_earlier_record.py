# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an earlier claim lies in the place of the present one's, which has no lease that ends. If these fail, a
rebuild cuts a tenant's power, is refused then, and neither a start nor what is printed brings her instance back.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record


def rebuild(site):
    return site.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)


def test_a_rebuild_is_refused_while_the_board_has_power_and_the_way_out_works(site):
    assert not any(result.get("failed") for result in site.provision("bob"))
    earlier = record(site).read_text()
    site.terminate("bob")
    assert not any(result.get("failed") for result in site.provision("jackie"))
    record(site).write_text(earlier)
    message = rebuild(site)["msg"]
    assert message.startswith("board0: the record of bob's claim is older than the database's: ")
    assert message.endswith(f"{play('reconcile')} corrects it")
    assert site.outlets()["1"] == "on"
    assert found(reconcile(site))[0][1] == "corrected"
    assert not rebuild(site).get("failed")
    assert site.outlets()["1"] == "on"
