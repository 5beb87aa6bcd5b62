#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give PCI devices to a libvirt domain, or take them back; how is in
module_utils/_hetero/hypervisors/libvirt/attachment.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: libvirt_hostdev
short_description: Give PCI devices to a KVM guest
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Attaches PCI devices to a libvirt domain by VFIO, or detaches them, in the guest that runs and in what its next
    start reads, and reads back what the domain has.
  - Says for each device where libvirt will leave it when the guest has ended. With O(managed=true) a device that was on
    pci-stub goes to the host's own driver then, and does not come back to pci-stub; one on vfio-pci stays there.
  - A device is refused while another guest, a container, a process, a mounted disk or the default route has it, and
    while another device of its IOMMU group is on a driver of the host's.
  - What it gives is in the host's allocation table, so that no container gets it as well.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  domain:
    description: Name of the domain.
    type: str
    required: true
  devices:
    description: Addresses of the devices, such as V(0000:85:00.0).
    type: list
    elements: str
    required: true
  all_functions:
    description: All functions of each card go together, such as the sound device of a GPU.
    type: bool
    default: false
  state:
    description: Whether the domain is to have them.
    type: str
    choices: [attached, detached]
    default: attached
  managed:
    description:
      - Whether libvirt takes a device from its driver when the guest starts, and gives it back afterwards. Otherwise it
        must be on vfio-pci (M(hetero.compute.pci_driver)).
    type: bool
    default: true
  live:
    description: Change the running guest, if it runs.
    type: bool
    default: true
  config:
    description: Change the description of the domain's next start. This is impossible for a domain that libvirt does
      not keep when it ends.
    type: bool
    default: true
  uri:
    description: Which libvirt.
    type: str
    default: qemu:///system
  state_db:
    description: The host's SQLite database of instances and allocations; by default the one of its configuration.
    type: path
  timeout:
    description: Seconds, in which a running guest must release what is taken from it.
    type: float
    default: 60
seealso:
  - module: hetero.compute.pci_info
  - module: hetero.compute.pci_driver
  - module: hetero.compute.instance
"""

EXAMPLES = r"""
- name: Give both functions of a card to a guest
  hetero.compute.libvirt_hostdev:
    domain: ml-8
    devices: ["0000:86:00.0"]
    all_functions: true

- name: Take it back
  hetero.compute.libvirt_hostdev:
    domain: ml-8
    devices: ["0000:86:00.0"]
    all_functions: true
    state: detached
"""

RETURN = r"""
domain:
  description: Name of the domain.
  returned: success
  type: str
running:
  description: Whether it runs.
  returned: success
  type: bool
devices:
  description: The devices that were meant, by address.
  returned: success
  type: list
  elements: dict
  contains:
    address: {description: Address., type: str}
    live: {description: Whether the guest that runs has it., type: bool}
    config: {description: Whether its next start has it., type: bool}
    before: {description: 'The driver it was on, or none.', type: str}
    driver: {description: 'The driver it is on, or none.', type: str}
    afterwards: {description: 'Where it goes when the guest has ended; none for one that was detached.', type: str}
    xml: {description: As libvirt's XML has it., type: str}
  sample:
    - address: '0000:86:00.0'
      live: false
      config: true
      before: pci-stub
      driver: pci-stub
      afterwards: goes to the host's own driver, not back to pci-stub
      xml: >-
        <hostdev mode="subsystem" type="pci" managed="yes"><driver name="vfio" /><source><address domain="0x0000"
        bus="0x86" slot="0x00" function="0x0" /></source></hostdev>
seconds:
  description: Seconds of each step.
  returned: success
  type: dict
  sample: {attach: 0.8}
failure:
  description: The error in its parts.
  returned: failure
  type: dict
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
from ..module_utils._hetero.devices.pci.paths import here
from ..module_utils._hetero.hypervisors.libvirt.attachment import Asked, attach, detach
from ..module_utils._hetero.hypervisors.libvirt.domain import Libvirt

SPEC = ArgumentSpec(
    {
        "domain": {"type": "str", "required": True},
        "devices": {"type": "list", "elements": "str", "required": True},
        "all_functions": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["attached", "detached"], "default": "attached"},
        "managed": {"type": "bool", "default": True},
        "live": {"type": "bool", "default": True},
        "config": {"type": "bool", "default": True},
        "uri": {"type": "str", "default": "qemu:///system"},
        "state_db": {"type": "path"},
        "timeout": {"type": "float", "default": 60},
    }
)


def work(params, check):
    """Look what the domain has, change that, read it back."""
    change = Change(check)
    must_not_be_lost_here(database=params["state_db"])
    paths = here(params["state_db"])
    domain = Libvirt(Deadline(params["timeout"]), params["uri"]).domain(params["domain"])
    asked = Asked(
        tuple(params["devices"]), params["managed"], params["live"], params["config"], params["all_functions"]
    )
    with Store(paths.state_db, create=not check) as store:
        if params["state"] == "detached":
            return detach(domain, asked, store, change, paths)
        return attach(domain, asked, store, change, paths, partial(gpus_of_containers, store, paths))


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
