# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways between the states of an instance on a compute host, and that its database knows no others.

Tests site/instance_states.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import instance_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance_states import TRANSITIONS

STATES = sorted(TRANSITIONS)


def test_what_runs_is_never_taken_for_what_never_ran():
    """Lost: a tenant's data, taken back after a failure as what nobody can have anything in."""
    for state in set(STATES) - {*instance_states.NEVER_RAN, instance_states.ENDING}:
        assert not TRANSITIONS[state] & set(instance_states.NEVER_RAN)
    for state in instance_states.NEVER_RAN:
        assert instance_states.ERROR not in TRANSITIONS[state]


@pytest.mark.parametrize("old", STATES)
def test_the_database_takes_no_other_way(claims, old):
    """Lost: the reason to believe what is recorded, once a fault in a verb has written what cannot be."""
    claims.claim("ml")
    with claims.host() as host:
        for new in STATES:
            host.store._db.write("UPDATE instances SET state = ?", (old,))
            if new == old or new in TRANSITIONS[old]:
                assert host.store.put("ml", state=new).state == new
            else:
                with pytest.raises(Refused, match=f"is in state '{old}' and cannot go to '{new}'"):
                    host.store.put("ml", state=new)
                assert host.store.claim_of("ml").state == old


def test_a_state_of_another_release_keeps_nobody_from_a_verb():
    """Lost: the end of an instance whose state was written by a release that has more of them."""
    assert instance_states.ways_from("hibernated") == set(STATES)
