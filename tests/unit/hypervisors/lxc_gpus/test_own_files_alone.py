# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that only a container's own file tells of, while the table is lost: asked for by the next. If these fail, a
container that has a GPU for itself has it no more.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_reconciling import repaired

OWN = ADDRESSES[1]


@pytest.mark.parametrize("runs", [True, False])
def test_who_would_share_is_not_given_what_one_has_for_itself(host, runs):
    """Lost: a GPU that a container has for itself, to one who asks to share it before the table is mended."""
    box, other = host.boxes.make(start=runs), host.boxes.make(start=False)
    host.attach(box, gpus=[OWN])
    lose(host)
    with pytest.raises(NoneFree, match=f"container {box.name} can open it, nobody allocated it"):
        host.attach(other, gpus=[OWN], share=True)
    assert repaired(host) == {"not written down": "written down"}
    assert host.table() == {OWN: [box.name]}
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[OWN], share=True)


def test_who_shares_a_gpu_keeps_it_with_the_others(host):
    """Lost: for all who share a GPU, its place in a table that is made anew."""
    boxes = [host.boxes.make(start=False) for _number in range(2)]
    for box in boxes:
        host.attach(box, gpus=[OWN], share=True)
    lose(host)
    third = host.boxes.make(start=False)
    host.attach(third, gpus=[OWN], share=True)
    assert repaired(host) == {"not written down": "written down"}
    assert sorted(host.table()[OWN]) == sorted(box.name for box in [*boxes, third])
