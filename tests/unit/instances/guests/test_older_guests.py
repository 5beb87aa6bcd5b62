# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As tests/unit/instances/test_older_database.py, on a host of guests."""

from __future__ import annotations

from functools import partial

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import compute_host
from ansible_collections.hetero.compute.plugins.modules import host_info, host_reconcile, libvirt_hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, OTHER
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.guests.conftest import IMAGE, KG1
from ansible_collections.hetero.compute.tests.unit.instances.older import as_before, looked_at

SMALL = dict(KG1, extra_specs={"hypervisor": "s== kvm"})
GUEST = dict(kind="guest")
NEW = dict(GUEST, flavor=SMALL, owner="alice", ssh_public_key=KEY, image=IMAGE, instance="ml-9")
LOOKS = [
    *(("instance", dict(NEW, flavor=KG1, instance="ml-8", state=state)) for state in ("present", "running")),
    *(("instance", dict(NEW, state=state)) for state in ("present", "running")),
    *(
        ("instance", dict(GUEST, instance="ml-8", state=state))
        for state in ("stopped", "rebooted", "rebuilt", "absent")
    ),
    ("instance", dict(GUEST, instance="ml-8", state="rebuilt", fresh=True)),
    ("instance", dict(GUEST, instance="ml-8", state="extended", lease_hours=2.0)),
    ("host_reconcile", {}),
    ("host_info", dict(events=5)),
    ("libvirt_hostdev", dict(domain="ml-8", devices=[CARD], state="detached")),
    ("libvirt_hostdev", dict(domain="other", devices=[OTHER])),
]


def test_check_mode_leaves_an_older_database_as_it_is(site, monkeypatch):
    """As it runs, and as it is where somebody ended the guest by hand."""
    for module in (compute_host, host_info, host_reconcile):
        monkeypatch.setattr(module, "Host", partial(Host, places=Places(pci=site.virt.paths)))
    monkeypatch.setattr(libvirt_hostdev, "here", lambda state_db: site.virt.paths._replace(state_db=state_db))
    site.provision("ml-8")
    site.virt.define("other")
    path = site.folder / "var/lib/hetero/host.db"
    as_before(path)
    for runs in (True, False):
        for name, given in LOOKS:
            where = dict(state_db=str(path)) if name == "libvirt_hostdev" else dict(config=str(site.config))
            looked_at(path, name, dict(given, **where))
        if runs:
            site.virt.domain("ml-8").stop()
