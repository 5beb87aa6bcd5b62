#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can this machine give PCI devices to guests? What is looked for: module_utils/_hetero/devices/pci/machine.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pci_check_info
short_description: Look whether a machine can give PCI devices to guests
version_added: 0.1.0
description:
  - Looks for the IOMMU, the kernel's modules and Debian packages, and at what the next boot will change.
  - Refuses a machine whose VFIO has, or will get, C(allow_unsafe_interrupts), with which a guest that has a device
    could raise any interrupt of the host.
  - Changes nothing. All that prevents it is returned at once.
  - Used by role P(hetero.compute.pci_passthrough#role).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.planned
notes:
  - Its former name, C(hetero.compute.pci_check), leads here.
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
  driver:
    description: What devices are to be bound to.
    type: str
    choices: [vfio-pci, pci-stub]
    default: vfio-pci
  arguments:
    description: Words that the kernel's command line is to hold. By default what this machine's IOMMU needs.
    type: list
    elements: str
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Can this machine give PCI devices to guests?
  hetero.compute.pci_check_info:
"""

RETURN = r"""
defects:
  description: What keeps the machine from it, with thing, what and remedy.
  returned: failure
  type: list
  elements: dict
notes:
  description: What is worth knowing and stops nothing.
  returned: always
  type: list
  elements: str
check_mode:
  description: Whether this was a dry run, for a task, a role or a play.
  returned: always
  type: bool
missing_packages:
  description: Those of O(packages) that are not installed.
  returned: success
  type: list
  elements: str
iommu:
  description: Whether the IOMMU works now.
  returned: success
  type: bool
arguments:
  description: Words that the kernel's command line is to hold.
  returned: success
  type: list
  elements: str
  sample: [intel_iommu=on]
missing_arguments:
  description: Those that this boot's command line does not hold.
  returned: success
  type: list
  elements: str
grub:
  description: Whether GRUB is here.
  returned: success
  type: bool
grub_stale:
  description: Whether GRUB's configuration has a kernel without these words.
  returned: success
  type: bool
initramfs:
  description: Whether initramfs-tools is here.
  returned: success
  type: bool
initramfs_stale:
  description: Versions of kernels whose initramfs holds other bindings than udev's rules.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.claims.host.config import PART
from ..module_utils._hetero.core.argument_spec import PLANNED, ArgumentSpec
from ..module_utils._hetero.core.findings import outcome
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.devices.pci.machine import look
from ..module_utils._hetero.nodes import plan_check

SPEC = PLANNED + ArgumentSpec(
    dict(
        driver=dict(type="str", choices=["vfio-pci", "pci-stub"], default="vfio-pci"),
        arguments=dict(type="list", elements="str"),
    )
)


def work(params, check):
    found = look(params["driver"], params["arguments"], params["packages"])
    plan_check.of_role("kvm_guests", params, found)
    plan_check.settings("kvm_guests", PART, params["settings"], found)
    return outcome(found, "a host that gives PCI devices to guests", dict(changed=False, check_mode=check))


def main():
    module = AnsibleModule(**SPEC.kwargs)

    def warned(params, check):
        result = work(params, check)
        for note in result["notes"] if params["settings"] else ():  # role pci_passthrough asks several times
            module.warn(note)
        return result

    run(module, warned)


if __name__ == "__main__":
    main()
