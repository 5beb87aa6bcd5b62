# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host boots and its driver is not loaded. Lost: the word that a container has none of its GPUs, as it starts."""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_uuid_in_own_file import restore


def test_a_container_does_not_start_without_its_gpu(host):
    box = host.boxes.make(name="a", start=False)
    host.attach(box, count=1)
    before, nvidia = persistence.read(box), host.machine.nvidia
    shutil.move(nvidia, f"{nvidia}.unloaded")
    said = restore(host)["a"]
    assert f"GPU {before.gpus[0]['address']}: driver nvidia does not show it" in said
    assert persistence.read(box).gpus == before.gpus
    with pytest.raises(HeteroError, match="cannot have the GPUs that it was given"):
        box.start(20)
    assert not box.running
    with pytest.raises(Refused, match=r"driver nvidia does not show it.*: mend that, then run this again"):
        host.attach(box, count=1)
    shutil.move(f"{nvidia}.unloaded", nvidia)  # it is loaded, and the printed way taken
    assert restore(host) == {"a": None}
    box.start(20)
    assert host.can_open(box) == [before.gpus[0]["address"]]
