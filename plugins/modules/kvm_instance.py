#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances in KVM guests with PCI devices; claims are accelerator_host/claiming.py's, their life is instances.py's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kvm_instance
short_description: Provide an instance in a KVM guest, with PCI devices of its own
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Claims memory, processors, disk, PCI devices and an address of the host for an instance of an owner, all in one
    transaction, as its flavor asks for them. A device that a container or another guest has is not given.
  - Makes a guest from an image as boards boot it (kernel, initrd, C(root/)), with a disk of its own, defines it with
    libvirt with its devices, and starts it; the kernel gets the guest's address as C(ip=).
  - Its devices go to vfio-pci before it starts. When the instance is given back, they are put back on the driver that
    they were on; the host's own driver never gets what a guest has had.
  - An instance is running when it answers ssh with the host key that was put into its root.
  - What never ran and cannot be brought up is taken back, so that nothing of it stays claimed; an instance that ran
    before keeps its claim, in state C(error).
  - Run again after it was killed anywhere, it goes on.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
  - hetero.compute.created
  - hetero.compute.instance
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A reboot is a reboot each time, and so is a rebuild with O(fresh=true).
options:
  instance:
    description:
      - Name of the instance; it becomes its domain's name and host name. 1 to 63 of a-z, 0-9 and C(-), with a letter
        or digit first and last.
      - With any state but V(present), the name of a request means all its instances.
    type: str
    required: true
  state:
    description:
      - V(present) claims, and makes nothing.
      - V(running) claims where O(flavor) is given, makes what is not there, and starts it.
      - V(stopped) ends the guest and keeps all that is claimed.
      - V(rebooted) ends and starts it.
      - V(rebuilt) makes it anew, of another O(image) or with another O(ssh_public_key), or because of O(fresh); what is
        in it goes.
      - V(extended) sets the end of its lease to O(lease_hours) from now.
      - V(absent) ends it, removes its disk, puts its devices back, and frees all that was claimed.
    type: str
    choices: [present, running, stopped, rebooted, rebuilt, extended, absent]
    default: running
  flavor:
    description:
      - The flavor (instance type) with its C(name), and any of C(memory_mb), C(vcpus), C(local_gb), C(flavorid),
        C(cpu_arch), C(cpu_info) and C(extra_specs). Needed to claim.
      - Of C(extra_specs), C(hypervisor) must name KVM (C(s== KVM)), and C(pci_passthrough:alias) says which devices it
        gets (C(a1:1), or C(a1:2, a2:1)), by the aliases of the host. Only devices that are on vfio-pci or pci-stub are
        given, and all functions of a card go together.
    type: dict
  devices:
    description:
      - Addresses of the devices that it is to get, as many as the flavor asks for. Without them, any that fit.
      - Counts when the instance is claimed.
    type: list
    elements: str
    default: []
  image:
    description:
      - The image that the guest is made from, by its name in the host's store. Without it, the host's default.
    type: str
seealso:
  - module: hetero.compute.host_info
  - module: hetero.compute.libvirt_hostdev
"""

EXAMPLES = r"""
- name: A guest with a GPU
  hetero.compute.kvm_instance:
    instance: ml-9
    owner: alice
    flavor:
      name: kg1.large
      memory_mb: 8192
      vcpus: 4
      local_gb: 40
      extra_specs: {hypervisor: s== KVM, "pci_passthrough:alias": "a1:1"}
    image: debian-12
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"

- name: Reboot it
  hetero.compute.kvm_instance:
    instance: ml-9
    state: rebooted

- name: Give it back
  hetero.compute.kvm_instance:
    instance: ml-9
    state: absent
"""

RETURN = r"""
instances:
  description: The instances of the request.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: Name of the instance and of its domain., type: str}
    request: {description: The name that was asked for., type: str}
    name: {description: Name of the host., type: str}
    kind: {description: Always kvm., type: str}
    ip: {description: Its address., type: str}
    owner: {description: Its owner., type: str}
    flavor: {description: Name of its flavor., type: str}
    image: {description: Its image., type: str}
    created: {description: When it was claimed (seconds since 1970)., type: float}
    expires: {description: 'When the claim expires, or none.', type: float}
    host_key: {description: The ssh host key put into its root., type: str}
    known_hosts: {description: The same as a line for known_hosts., type: str}
    image_hash: {description: Hash of its image., type: str}
    state: {description: Its state., type: str}
    console: {description: Where on the host lies what its console showed., type: str}
    devices: {description: Addresses of its PCI devices., type: list, elements: str}
    until: {description: 'The end of its lease in words, with O(state=extended).', type: str}
    failed: {description: Whether it failed., type: bool}
    error: {description: Why., type: str}
new:
  description: The instances that were claimed just now.
  returned: when something may have been claimed
  type: list
  elements: str
lines:
  description: What was done, for people, with instance, node, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: ml-9, node: kvm1, phase: '', text: 'guest started with 0000:86:00.0', seconds: 2.1}
failure:
  description: The error in its parts. Where nothing is free, C(rejected) and C(rejected_lines) say why.
  returned: failure
  type: dict
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
follow:
  description: Where to find progress and result.
  returned: when O(background=true) and the work takes long
  type: dict
news:
  description: What a first look at the job found.
  returned: when O(background=true) and the work takes long
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.accelerator_host import instance_module
from ..module_utils.accelerator_host.job import in_background
from ..module_utils.module import run
from ..module_utils.spec import QUICK, ArgumentSpec

SPEC = instance_module.SPEC + ArgumentSpec({"devices": {"type": "list", "elements": "str", "default": []}})
#: What check mode says of an instance that is not there yet.
PLANNED = "disk would be made from {image}, guest started with its devices"


def work(params, check):
    return instance_module.work(params, check, "kvm", PLANNED)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    params = module.params
    if not params["background"] or module.check_mode or params["state"] in QUICK:
        run(module, work)
    in_background(
        module, params["config"], params["instance"], params["count"], params["timeout"], lambda: work(params, False)
    )


if __name__ == "__main__":
    main()
