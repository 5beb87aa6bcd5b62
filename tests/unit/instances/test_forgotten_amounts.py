# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory, processors and disk of an instance that only the record of its claim knows, for the database is older."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back

ALL = {"memory_mb": 65536, "vcpus": 32, "local_gb": 640}
HALF = dict(SMALL, **{name: amount // 2 for name, amount in ALL.items()})
FULL = dict(SMALL, **ALL)


@pytest.fixture
def forgotten(claims):
    """jo's ml-8, which has half of the host and was made since the copy that was put back."""
    claims.claim("ml-7", flavor=SMALL)
    copy = backups.make(claims.database)
    claims.claim("ml-8", flavor=HALF)
    with claims.host() as host:
        host.store.put("ml-8", container=f"{claims.lxcpath}/ml-8#{'8' * 32}")
    put_back(claims, copy)
    return claims


@pytest.mark.parametrize("name", ALL)
def test_what_it_has_is_given_to_nobody(forgotten, name):
    """Lost: jo's processes, which are killed for the memory that bo's take; or jo's data, as the disk is full."""
    total, half = ALL[name], HALF[name]
    with pytest.raises(NoneFree, match=f"{half} .* wanted, {total - half - SMALL[name]} of {total} left"):
        forgotten.claim("bob", owner="bo", flavor=dict(SMALL, **{name: half}))
    assert forgotten.claim("bob", owner="bo", flavor=SMALL)["new"] == ["bob"]


def test_what_it_has_is_not_shown_as_free(forgotten):
    """Lost: a play's choice of another host, for this one looks as if it had room."""
    left = {name: {"total": amount, "free": amount // 2 - SMALL[name]} for name, amount in ALL.items()}
    assert forgotten.info()["capacity"] == left


def test_a_host_whose_database_knows_all_is_given_whole(claims):
    """Lost: half of a host, which is counted twice."""
    claims.claim("ml-8", flavor=FULL)
    with claims.host() as host:
        host.store.put("ml-8", container=f"{claims.lxcpath}/ml-8#{'8' * 32}")
    assert all(amount["free"] == 0 for amount in claims.info()["capacity"].values())
    with claims.host() as host:
        host.store.put("ml-8", state="ending", container=None)
        host.store.release("ml-8")
    assert claims.claim("bob", owner="bo", flavor=FULL)["new"] == ["bob"]
