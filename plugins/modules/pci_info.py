#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show a host's PCI devices and who has them. What is shown is put together in
module_utils/_hetero/devices/pci/info.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pci_info
short_description: Show PCI devices, their IOMMU groups, drivers and holders
version_added: 0.1.0
description:
  - Shows what C(lspci -nn) shows and more, read from sysfs and named by the system's pci.ids (Debian package
    C(pci.ids)).
  - Says of each device which others go with it (IOMMU group), who has it, and whether it is free to be given to a
    guest.
  - Counts devices into pools as Nova's C(pci_stats) does.
  - Changes nothing. Run it as root, or processes of others are not seen.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details:
      - Nothing is changed.
  idempotent:
    support: full
options:
  address:
    description: Show only these devices, by address. C(0000:) may be left out; C(*) stands for any characters.
    type: list
    elements: str
  vendor_id:
    description: Show only devices of this vendor, such as V(10de).
    type: str
  product_id:
    description: Show only devices with this product id, such as V(11bf).
    type: str
  device_class:
    description:
      - Show only devices of this class, by the beginning of its code, such as V(03) for displays or V(0302) for 3D
        controllers.
    type: str
    aliases: [class]
seealso:
  - module: hetero.compute.pci_driver
  - plugin: hetero.compute.pci_table
    plugin_type: filter
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: All NVIDIA cards
  hetero.compute.pci_info:
    vendor_id: 10de
  register: cards

- name: Show them
  hetero.compute.show:
    lines: "{{ cards.devices | hetero.compute.pci_table }}"
"""

RETURN = r"""
devices:
  description: The devices, by address, and those that are bound at each boot and are not there.
  returned: success
  type: list
  elements: dict
  contains:
    address: {description: Address, type: str}
    description: {description: As C(lspci -nn) writes it behind the address., type: str}
    device_class: {description: Class as six hexadecimal digits., type: str}
    class_name: {description: 'Name of the class, or none.', type: str}
    vendor_id: {description: Vendor., type: str}
    vendor: {description: 'Name of the vendor, or none.', type: str}
    product_id: {description: Product., type: str}
    product: {description: 'Name of the product, or none.', type: str}
    subsystem_vendor_id: {description: Vendor of the card., type: str}
    subsystem_id: {description: Product id of the card., type: str}
    revision: {description: Revision., type: str}
    driver: {description: 'Driver that it is bound to, or none.', type: str}
    driver_override: {description: 'The only driver that may take it, or none where any may.', type: str}
    iommu_group: {description: 'Number of its IOMMU group, or none where the IOMMU is off.', type: int}
    siblings: {description: Addresses of the other devices in that group., type: list, elements: str}
    numa_node: {description: 'NUMA node that it is near to, or none.', type: int}
    type: {description: 'V(type-PCI), V(type-PF) or V(type-VF), as Nova calls them.', type: str}
    parent: {description: 'Of a virtual function, the address of its card.', type: str}
    parent_interface: {description: 'Of a virtual function with an interface, that of its card.', type: str}
    holders:
      description: Who has it, or what of this host needs it.
      type: list
      elements: dict
      contains:
        kind:
          description: V(process), V(daemon) (nvidia-persistenced), V(guest), V(allocation), V(display), V(storage) or
            V(network).
          type: str
        text: {description: In words., type: str}
        pid: {description: 'Its process, or none.', type: int}
        command: {description: 'Name of its program, or none.', type: str}
        unit: {description: 'The service that a daemon is, or none.', type: str}
    domains: {description: libvirt domains that are defined with it., type: list, elements: str}
    state:
      description:
        - V(allocated), a guest or an instance has it; V(claimed), a domain is defined with it; V(removed), it is
          bound at each boot and not there; V(host), the host itself needs it, or it is a bridge; else V(available).
      type: str
    persistent: {description: 'Driver that it is bound to at each boot, or none.', type: str}
    pending: {description: Whether a change of its driver is not over., type: bool}
  sample:
    - address: "0000:85:00.0"
      description: "VGA compatible controller [0300]: NVIDIA Corporation GK104GL [GRID K2] [10de:11bf] (rev a1)"
      vendor_id: 10de
      product_id: 11bf
      driver: vfio-pci
      iommu_group: 12
      siblings: []
      numa_node: 1
      type: type-PCI
      state: available
      persistent: vfio-pci
pools:
  description: >-
    The available ones among these devices as Nova counts them, with C(vendor_id), C(product_id), C(numa_node),
    C(dev_type), C(address), C(count) and C(devices), and with C(remote_managed) and C(parent_ifname) where Nova has
    them.
  returned: success
  type: list
  elements: dict
  sample:
    - vendor_id: 10de
      product_id: 11bf
      numa_node: 1
      dev_type: type-PCI
      address: '0000:85:00.0'
      count: 1
      devices: ['0000:85:00.0']
problems:
  description: In words, what is not as it was meant to be, with what to do.
  returned: success
  type: list
  elements: str
  sample: []
failure:
  description: The error in its parts.
  returned: failure
  type: dict
  sample: {what: is no PCI address, thing: '85', remedy: 'write it as 0000:85:00.0'}
"""

from fnmatch import fnmatchcase

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.devices.pci.info import information
from ..module_utils._hetero.devices.pci.paths import here

SPEC = ArgumentSpec(
    dict(
        address=dict(type="list", elements="str"),
        vendor_id=dict(type="str"),
        product_id=dict(type="str"),
        device_class=dict(type="str", aliases=["class"]),
    )
)


def wanted(params):
    """A function that says of a Device whether it is to be shown."""
    addresses = [text.lower() for text in params["address"] or ()]
    vendor, product, device_class = (
        (params[name] or "").lower() for name in ("vendor_id", "product_id", "device_class")
    )

    def shown(device):
        return (
            (
                not addresses
                or any(fnmatchcase(device.address, text) or device.address == f"0000:{text}" for text in addresses)
            )
            and device.vendor_id.startswith(vendor)
            and device.product_id.startswith(product)
            and device.class_code.startswith(device_class)
        )

    return shown


def work(params, check):
    return dict(information(here(), wanted(params)), changed=False)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
