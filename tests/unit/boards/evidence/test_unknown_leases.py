# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases of boards of which the database may not know the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import unknown_leases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def test_a_lease_is_known_unless_its_record_may_know_more(node, proxy):
    """Lost: an instance, ended by a lease that its owner has long extended; or one that nobody ends."""
    (mine,) = claimed(proxy)
    leased = replace(mine, expires=5.0)
    assert unknown_leases.unknown_lease(proxy, leased) is None
    unknown_leases.must_know_the_lease(proxy, leased)
    assert not proxy.store.is_record_lost(mine)
    node.record(0).unlink()
    assert proxy.store.is_record_lost(mine)
    assert not proxy.store.is_record_lost(replace(mine, created=1.0))
    assert unknown_leases.unknown_lease(proxy, mine) is None
    what, remedy = unknown_leases.unknown_lease(proxy, leased)
    assert what == "the record of jackie's claim is lost, and the database may be older than what it said"
    assert remedy.startswith("nothing is touched, and its lease is not ended: ")
    with pytest.raises(Refused) as error:
        unknown_leases.must_know_the_lease(proxy, leased)
    assert (error.value.thing, error.value.what, error.value.remedy) == ("board0", what, remedy)
    assert unknown_leases.unknown_lease(proxy, replace(leased, created=1.0)) is None
    node.record(0).write_text("{")
    what, remedy = unknown_leases.unknown_lease(proxy, leased)
    assert what == f"{node.record(0)}: what it says of a claim cannot be read"
    assert "-e adopt=jackie" in remedy
    assert unknown_leases.unknown_lease(proxy, mine) is None
