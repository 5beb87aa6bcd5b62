# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broken card is replaced by a new one in its slot, and the driver shows no UUID before the new one's first use.
Lost: the GPU that a tenant's programs run on, which a repair closed under them.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_uuid_in_own_file import UNKNOWN

NEW = "GPU-00000009-1111-2222-3333-444444444444"


@pytest.fixture
def box(host):
    return host.boxes.make(name="a")


@pytest.fixture
def own(host, box):
    """Its GPU by address, which it was given by its slot, and has used since."""
    own = host.attach(box, count=1)["gpus"][0]
    host.machine.serve(own["address"], MINORS[own["address"]], UNKNOWN)
    assert f"{own['address']} is taken for {own['uuid']} by its slot" in host.attach(box, count=1)["notes"][-1]
    host.machine.serve(own["address"], MINORS[own["address"]], NEW)
    return own["address"]


def test_it_is_said_and_not_closed(host, box, own):
    (found,) = host.reconcile(repair=True)["findings"]
    assert (found["kind"], found["address"], found["done"]) == ("lost GPU", own, None)
    assert "another is in its slot" in found["found"]
    assert host.can_open(box) == [own]
    with pytest.raises(NoneFree, match=f"{own} allocated to a"):
        host.attach(host.boxes.make(start=False), gpus=[own])


def test_the_way_out_works_as_printed(host, box, own):
    """Lost: a start of the container, for ever."""
    with pytest.raises(Refused, match=r"which is no more on this host: put it back, or detach it .* and ask again"):
        host.attach(box, count=1)
    host.detach(box)
    assert (host.can_open(box), host.table()) == ([], {})
    (gpu,) = host.attach(box, gpus=[own])["gpus"]
    assert (gpu["uuid"], host.can_open(box)) == (NEW, [own])
    assert host.found() == set()
