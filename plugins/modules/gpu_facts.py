#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set this machine's GPUs as facts; put together in module_utils/_hetero/compute_host/gpu_facts.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: Set the GPUs of a machine as facts
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Finds NVIDIA GPUs by what the kernel shows of them in C(/proc/driver/nvidia), C(/sys/bus/pci) and C(/dev), and asks
    no other program. A machine without a driver shows its GPUs, too.
  - Says of each what it is, its device nodes with the numbers that their drivers have now, whether it is healthy, and
    who has it.
  - GPUs of AMD and Intel are facts only; containers get none of them.
  - The GPUs are its facts. What holds for all of them together (RV(shared), RV(driver_version), RV(unsupported)) is
    returned beside the facts and is available in a registered result.
  - Changes nothing. Role P(hetero.compute.gpu_lxc#role) installs the same as local fact
    C(ansible_local.hetero_gpus).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
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
  overrides:
    description:
      - What the machine says wrong or not at all of its GPUs, by PCI address, UUID, index or device id (V(10de:1091),
        which is all GPUs of that kind).
      - A dictionary with any of C(arch) (V(fermi), V(kepler), V(maxwell), V(pascal), V(volta), V(turing), V(ampere),
        V(ada), V(hopper), V(blackwell)), C(index) and C(healthy), or the architecture alone.
      - It overrides C(gpu_overrides) of O(config), which overrides what the machine says.
    type: dict
    default: {}
notes:
  - A machine that was not set up yet has no O(config), and is shown all the same.
  - >-
    A GPU is unhealthy after an Xid line of its own in the kernel's log since the driver was loaded; 13, 31, 43, 45, 68
    and 109 are faults of programs and do not count. Override C(healthy) to use it all the same.
  - Architectures are known by PCI device id; a GPU that is newer than the list has none, and says so in C(note).
seealso:
  - module: hetero.compute.host_info
"""

EXAMPLES = r"""
- name: What GPUs are there
  hetero.compute.gpu_facts:

- name: Show the free ones of architecture fermi
  ansible.builtin.debug:
    msg: "{{ hetero_gpus | selectattr('arch', 'eq', 'fermi') | rejectattr('holder') | map(attribute='address') }}"

- name: One that the list does not know, and one that is used in spite of its fault
  hetero.compute.gpu_facts:
    overrides:
      "10de:9999": blackwell
      "0000:05:00.0": {healthy: true}
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    hetero_gpus:
      description: The GPUs, by PCI address.
      type: list
      elements: dict
      contains:
        address: {description: PCI address., type: str}
        uuid: {description: 'UUID, or none before its first use.', type: str}
        minor: {description: 'Minor of its device node, or none without its driver.', type: int}
        index: {description: 'As C(nvidia-smi) counts, by address; or none without its driver.', type: int}
        vendor: {description: 'V(nvidia), V(amd) or V(intel).', type: str}
        device_id: {description: 'PCI vendor and device, or none where the GPU fell off the bus.', type: str}
        model: {description: 'Model, or none without its driver.', type: str}
        arch: {description: 'Architecture, or none where it is not known.', type: str}
        driver: {description: 'The driver it is bound to, or none.', type: str}
        driver_version: {description: 'Version of that driver, or none.', type: str}
        numa_node: {description: 'NUMA node, or none.', type: int}
        iommu_group: {description: 'IOMMU group, or none.', type: str}
        nodes:
          description: The device nodes that are handed over with it; those that all share are in RV(shared).
          type: list
          elements: dict
          contains:
            path: {description: Path., type: str}
            kind: {description: 'V(c) for character devices.', type: str}
            major: {description: 'Major of its driver now, or none while that is not loaded.', type: int}
            minor: {description: Minor., type: int}
            mode: {description: 'Mode of the host''s node, such as V(0666), or none.', type: str}
            uid: {description: 'Its owner, or none.', type: int}
            gid: {description: 'Its group, or none.', type: int}
            present: {description: Whether the host has it with these numbers., type: bool}
            why_absent: {description: 'Why not, and what to do; or none.', type: str}
        drm_nodes:
          description: Its graphics nodes, with the same fields. They are handed to no container.
          type: list
          elements: dict
        healthy: {description: Whether it works., type: bool}
        why_unhealthy: {description: 'Why not, or none.', type: str}
        unsupported: {description: 'Why no container gets it, or none.', type: str}
        note: {description: 'What an operator may want to set right, or none.', type: str}
        holder: {description: 'Names of those that have it, or none.', type: str}
        holders:
          description: Those that have it.
          type: list
          elements: dict
          contains:
            kind: {description: 'V(container), V(libvirt) or V(vfio).', type: str}
            name: {description: 'Name of the container or domain, or the driver that keeps it for guests.', type: str}
        processes:
          description: Processes that have it open or mapped.
          type: list
          elements: dict
          contains:
            pid: {description: Process id on the host., type: int}
            command: {description: Name of its program., type: str}
            container: {description: 'Its container, or none.', type: str}
            domain: {description: 'Its libvirt domain, or none.', type: str}
  sample:
    hetero_gpus:
      - address: "0000:05:00.0"
        uuid: GPU-00000002-1111-2222-3333-444444444444
        minor: 2
        index: 0
        model: Tesla M2090
        arch: fermi
        healthy: true
        holder: ml-7
shared:
  description: The device nodes that all NVIDIA GPUs share, with the fields of a GPU's.
  returned: always
  type: list
  elements: dict
driver_version:
  description: Version of NVIDIA's driver, or none.
  returned: always
  type: str
unsupported:
  description: Why no GPU of this machine can be handed to a container, or none.
  returned: always
  type: str
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {look: 0.021}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.compute_host.gpu_facts import look
from ..module_utils._hetero.core.argument_spec import HOST, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.module import run

SPEC = HOST + ArgumentSpec(dict(overrides=dict(type="dict", default={})))


def work(params, check, warn):
    change = Change(check)
    with change.step("look"):
        seen = look(params["config"], params["overrides"])
    for name in seen.pop("unused_overrides"):
        warn(f"no GPU here is {name}, which the overrides name")
    facts = dict(hetero_gpus=seen.pop("gpus"))
    return dict(seen, ansible_facts=facts, changed=change.changed, seconds=change.seconds)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    run(module, lambda params, check: work(params, check, module.warn))


if __name__ == "__main__":
    main()
