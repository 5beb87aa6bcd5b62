# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An unprivileged container without device rules of its own (as LXC's userns.conf makes each) has a GPU by its node
(isolation node-only), and runs; its folder is moved aside, or its configuration is removed. If this fails,
any request by another container frees its GPU, and the next one gives it away: two tenants have it open at once.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS


@pytest.mark.parametrize("what", ["moved aside", "its configuration"])
@pytest.mark.parametrize("persistent", [True, False])
def test_its_gpu_goes_to_no_other(host, pure_v2, what, persistent):
    box = host.boxes.make(name="box", rules=False, unprivileged=True)
    other = host.boxes.make(name="other", start=False)
    pid = box.init_pid
    assert host.attach(box, gpus=ADDRESSES[:1], persistent=persistent)["isolation"] == "node-only"
    if what == "moved aside":
        os.rename(box.folder, f"{box.folder}.aside")
    else:
        os.unlink(box.config_file)
    try:
        host.attach(other, gpus=ADDRESSES[1:2])
        assert os.path.exists(f"/proc/{pid}/root/dev/nvidia{MINORS[ADDRESSES[0]]}"), "it has it no more"
        assert host.table() == {ADDRESSES[0]: ["box"], ADDRESSES[1]: ["other"]}, "free, and it has it still"
        with pytest.raises(NoneFree, match="allocated to box"):
            host.attach(other, gpus=ADDRESSES[:1])
    finally:
        os.kill(pid, signal.SIGKILL)
