#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI passthrough of Nova's nodes, looked at together. The rules are in module_utils/_hetero/openstack/lint.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nova_pci_info
short_description: Say which flavor with PCI devices Nova can schedule on which host, and why not
version_added: 0.1.0
description:
  - Reads what the Nova services of this machine have of their PCI options, as they are started (O(services)), and looks
    at it together with what it found on other nodes (O(nodes)).
  - For each flavor and host, decides as Nova's C(PciPassthroughFilter) and C(NUMATopologyFilter) do, and names the
    stage at which no device is left. V(device_spec) is where no device is matched, V(free) where all that are matched
    are in use, V(alias) where none is what the alias wants, V(numa) where none is near, V(pf) where only physical
    functions are left and the alias does not ask for them, V(remote_managed) where they serve ports only, V(count)
    where some are left, and too few.
  - Changes nothing. Memory, processors, Placement and ports are not looked at.
extends_documentation_fragment:
  - hetero.compute.attributes
notes:
  - Its former name, C(hetero.compute.nova_pci_lint), leads here.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  services:
    description: The Nova services of this machine.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description: What the node is to Nova.
        type: str
        choices: [api, compute, scheduler]
        required: true
      command:
        description: How the service is started. Without it as M(hetero.compute.nova_pci) says.
        type: str
      wsgi:
        description: Whether the API is in a web server.
        type: bool
      environment:
        description: The service's environment.
        type: dict
      home:
        description: Home folder of the service's user.
        type: path
  name:
    description: This machine's name. The default is its host name.
    type: str
  devices:
    description: This machine's devices, as M(hetero.compute.pci_info) returns them.
    type: list
    elements: dict
    default: []
  nodes:
    description: Services of other machines, as RV(nodes) of a run there.
    type: list
    elements: dict
    default: []
  flavors:
    description: Flavors by name, of which C(extra_specs) are looked at.
    type: dict
    default: {}
  release:
    description: Nova's release, by number or name.
    type: str
    default: "34"
  root:
    description: The folder that is C(/) to the services of this machine.
    type: path
    default: /
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Read what Nova has on each node
  hetero.compute.nova_pci_info:
    services: [{kind: compute}]
    devices: "{{ pci.devices }}"
  register: here

- name: Say what can run where
  hetero.compute.nova_pci_info:
    nodes: "{{ ansible_play_hosts | map('extract', hostvars, ['here', 'nodes']) | flatten }}"
    flavors:
      gpu.k2:
        extra_specs: {"pci_passthrough:alias": "a1:1"}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: The services of this machine, for O(nodes) of another run.
  returned: success
  type: list
  elements: dict
findings:
  description: What is wrong, or not to be seen.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: The node; empty for all of them together., type: str}
    what: {description: A sentence., type: str}
  sample:
    - node: ctl1
      what: "nova-scheduler of ctl1 has no PciPassthroughFilter: it chooses hosts without looking at their devices"
patch:
  description: What is left to do to files of this machine that are halfway to the new names.
  returned: success
  type: str
flavors:
  description: By flavor, its verdict for each compute node, or its error.
  returned: success
  type: dict
  contains:
    command: {description: The command that sets the flavor's property., type: str}
    error: {description: Why the flavor itself is wrong., type: str}
    hosts: {description: 'By host, C(fits), C(stage) and C(why).', type: dict}
  sample:
    gpu.k2:
      command: openstack flavor set gpu.k2 --property "pci_passthrough:alias"="a1:1"
      error: null
      hosts:
        kvm1: {fits: true, stage: null, why: ""}
        kvm2: {fits: false, stage: free, why: all devices that device_spec matches are in use}
failure:
  description: The error in its parts.
  returned: failure
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.openstack import lint

SERVICE = dict(
    kind=dict(type="str", choices=["api", "compute", "scheduler"], required=True),
    command=dict(type="str"),
    wsgi=dict(type="bool"),
    environment=dict(type="dict"),
    home=dict(type="path"),
)
SPEC = ArgumentSpec(
    dict(
        services=dict(type="list", elements="dict", options=SERVICE, default=[]),
        name=dict(type="str"),
        devices=dict(type="list", elements="dict", default=[]),
        nodes=dict(type="list", elements="dict", default=[]),
        flavors=dict(type="dict", default={}),
        release=dict(type="str", default="34"),
        root=dict(type="path", default="/"),
    )
)


def work(params, _check):
    here, notes, patch = lint.here(params)
    findings, flavors = lint.lint([*here, *params["nodes"]], params["flavors"], params["release"])
    return dict(changed=False, nodes=here, findings=notes + findings, patch=patch, flavors=flavors)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
