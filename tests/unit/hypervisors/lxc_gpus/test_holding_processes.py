# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If this fails, a GPU that a container can open, or still has open, is shown as nobody's."""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import gpu_facts
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def test_facts_name_the_container_that_can_open_a_gpu(host, tmp_path):
    config = tmp_path / "host.json"
    config.write_text(json.dumps({"lxcpath": host.boxes.lxcpath}))

    def holders():
        seen = gpu_facts.look(str(config), paths=host.machine.paths)["gpus"]
        return {gpu["address"]: gpu["holders"] for gpu in seen if gpu["holders"]}

    box, other = host.boxes.make(), host.boxes.make()
    assert holders() == {}
    host.attach(box, gpus=ADDRESSES[1:2], share=True)
    host.attach(other, gpus=ADDRESSES[1:3], share=True)
    both = [{"kind": "container", "name": name} for name in sorted([box.name, other.name])]
    assert holders() == {ADDRESSES[1]: both, ADDRESSES[2]: [{"kind": "container", "name": other.name}]}
    host.detach(other)
    assert holders() == {ADDRESSES[1]: [{"kind": "container", "name": box.name}]}
    host.detach(box)
    assert holders() == {}
