# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers was moved while an instance is stopped, as its errors ask for (stop it before it is moved),
and the instance was started there by its verb. If this fails, the lines of its configuration that include its devices
and run its hooks name the former path: it is without its GPUs after each later start of the host, or of lxc-start.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_moved_while_it_runs import ONE, held, move


def test_it_has_its_gpu_after_the_next_start_of_its_host(site):
    site.claim("a", flavor=ONE, owner="jo", key=KEY)
    assert not site.up("a").get("failed")
    site.do(lifecycle.stopped, "a")
    disks.unmount(site.container("a"), site.here.disks)
    move(site, site.folder / "srv-lxc")
    for _time in range(2):
        done = site.up("a")
        assert not done.get("failed"), done["msg"]
    assert site.can_open("a") == held(site)
    box = site.container("a")
    box.stop()
    box.start(60)  # as the host does when it boots
    assert site.can_open("a") == held(site)
