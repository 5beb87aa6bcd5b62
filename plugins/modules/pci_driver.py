#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give PCI devices to a driver for guests, or back to the host's. How,
module_utils/_hetero/devices/pci/binding_change.py knows.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pci_driver
short_description: Bind PCI devices to vfio-pci or pci-stub, or back
version_added: 0.1.0
description:
  - Takes PCI devices from the host's driver and keeps them for guests, or gives them back.
  - All functions of a card that lie in one IOMMU group go together. Another device of that group that is on a driver
    of the host's is a reason to refuse, because the kernel gives no guest a part of a group; name it as well.
  - Refuses, with everything that speaks against it, where a process, a guest or nvidia-persistenced has a device, a
    file system or swap lies on it, the default route, a mount from another machine or this login goes over it, the
    machine boots on that display, or an instance or a container on this host has it.
  - What is to be done and how it was is on disk (C(/var/lib/hetero/pci/journal.json)) before a device is touched. All
    devices are bound, or all are put back as they were.
  - An unbind waits in the kernel until whoever has the device lets go, and can neither be ended nor taken back. After
    O(timeout) the module fails and names the devices in RV(pending). The next run, or C(hetero pci-restore), ends
    what was begun; a boot begins afresh, from the lasting bindings.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
attributes:
  check_mode:
    support: full
    details:
      - The driver that the host would choose is not known before; it is shown as V(default).
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  devices:
    description: Devices by address (C(0000:) may be left out), or all of a kind as V(vendor:product).
    type: list
    elements: str
    required: true
  driver:
    description:
      - V(vfio-pci) is for guests. Use it with libvirt and Nova, which leave such a card on it when a guest ends.
      - V(pci-stub) only keeps the host's driver away; libvirt moves a card from there to V(vfio-pci), and when the
        guest ends, to the host's driver.
      - V(default) gives devices back to the driver that the host chooses.
    type: str
    choices: [vfio-pci, pci-stub, default]
    default: vfio-pci
  persistent:
    description:
      - Whether the binding lasts over a boot, by a rule of udev for the device's address with these ids
        (C(/etc/udev/rules.d/40-hetero-pci.rules)). A driver that comes first, from the initramfs, needs role
        P(hetero.compute.pci_passthrough#role), too.
      - V(false) takes such a rule out. O(driver=default) always does.
    type: bool
    default: true
  force:
    description:
      - Go on although processes, guests or the boot display have a device. nvidia-persistenced is stopped for it, and
        started again at the end, however it ends.
      - Never goes past file systems, swap, the network that this host needs, and the GPUs of instances and
        containers.
    type: bool
    default: false
  timeout:
    description: Seconds for drivers to let go of their devices.
    type: float
    default: 30
seealso:
  - module: hetero.compute.pci_info
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Keep a card for guests
  hetero.compute.pci_driver:
    devices: ["0000:85:00.0"]

- name: Keep all cards of a kind for guests
  hetero.compute.pci_driver:
    devices: ["10de:11bf"]

- name: Give it back
  hetero.compute.pci_driver:
    devices: ["0000:85:00.0"]
    driver: default
"""

RETURN = r"""
devices:
  description: The devices that were looked at, by address.
  returned: once the devices were found
  type: list
  elements: dict
  contains:
    address: {description: Address., type: str}
    vendor_id: {description: Vendor., type: str}
    product_id: {description: Product., type: str}
    before: {description: 'The driver it was on, or none.', type: str}
    after: {description: 'The driver it is on (in check mode, would be), or none.', type: str}
    group: {description: 'Its IOMMU group, or none.', type: int}
    siblings: {description: Addresses of the other devices in that group., type: list, elements: str}
    pending: {description: Whether the change is not over., type: bool}
    persistent: {description: 'The driver it is bound to at each boot, or none.', type: str}
  sample:
    - address: '0000:85:00.0'
      vendor_id: 10de
      product_id: 11bf
      before: nouveau
      after: vfio-pci
      group: 12
      siblings: []
      pending: false
      persistent: vfio-pci
pending:
  description: Addresses whose driver has not let go yet.
  returned: once the devices were found
  type: list
  elements: str
  sample: []
notes:
  description: In words, what else was done, such as ending what an earlier run had left.
  returned: once the devices were found
  type: list
  elements: str
  sample: []
seconds:
  description: Seconds of each step.
  returned: once the devices were found
  type: dict
  sample: {look: 0.01, bind: 0.2}
failure:
  description: The error in its parts; C(holders) says who has which device.
  returned: failure
  type: dict
  sample: {what: 'not bound to vfio-pci: 0000:85:00.0: a process has it open: Xorg (pid 812)', remedy: end them}
"""

from functools import partial

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.claims.host.store import Store
from ..module_utils._hetero.compute_host.gpu_site import gpus_of_containers
from ..module_utils._hetero.compute_host.lost_database import must_not_be_lost_here
from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.devices.pci.binding_change import change_driver
from ..module_utils._hetero.devices.pci.paths import here

SPEC = ArgumentSpec(
    dict(
        devices=dict(type="list", elements="str", required=True),
        driver=dict(type="str", choices=["vfio-pci", "pci-stub", "default"], default="vfio-pci"),
        persistent=dict(type="bool", default=True),
        force=dict(type="bool", default=False),
        timeout=dict(type="float", default=30),
    )
)


def work(params, check):
    change = Change(check)
    asked = {name: params[name] for name in ("devices", "driver", "persistent", "force")}
    must_not_be_lost_here()
    paths = here()
    deadline = Deadline(params["timeout"])
    with Store(paths.state_db, create=False) as store:
        result = change_driver(asked, change, deadline, paths, partial(gpus_of_containers, store, paths))
    return dict(change.result, **result)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
