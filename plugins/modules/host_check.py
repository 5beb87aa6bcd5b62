#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can give GPUs to containers, and whether a host has what they need. Looks, and changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_check
short_description: Say what is wrong with an accelerator host
version_added: 0.1.0
description:
  - With O(stage=machine), says all at once what keeps a machine from giving GPUs to LXC containers.
  - With O(stage=services), fails where a host lacks LXC, its bridge, or a device node of a GPU.
  - Changes nothing. Used by role P(hetero.compute.gpu_lxc#role).
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  stage:
    description: V(machine) before the set-up, V(services) after it.
    type: str
    choices: [machine, services]
    default: machine
  lxcpath:
    description: Folder of the containers.
    type: path
    default: /var/lib/lxc
  state_folder:
    description: Folder of images and the database.
    type: path
    default: /var/lib/hetero
  bridge:
    description: Bridge of the containers.
    type: str
    default: hetero0
  make_bridge:
    description: Whether the bridge is the role's to make.
    type: bool
    default: true
  network:
    description: Network of the containers.
    type: str
    default: 10.0.80.0/24
  gateway:
    description: The containers' way out; empty for the bridge's own address, the first of O(network), if it is made.
    type: str
    default: ""
  addresses:
    description: First and last address that containers get; empty for all from the tenth on.
    type: list
    elements: str
    default: []
  unprivileged:
    description: Whether containers are to be unprivileged.
    type: bool
    default: true
  gpu_overrides:
    description: What the operator says of GPUs, by address, UUID, index or device id.
    type: dict
    default: {}
  packages:
    description: Debian packages to look for.
    type: list
    elements: str
    default: []
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Can this machine give GPUs to containers?
  hetero.compute.host_check:
    network: 10.0.80.0/24

- name: Has it what they need?
  hetero.compute.host_check:
    stage: services
"""

RETURN = r"""
defects:
  description: What keeps the machine from being an accelerator host, with thing, what and remedy.
  returned: failure, when O(stage=machine)
  type: list
  elements: dict
notes:
  description: What is worth knowing and stops nothing.
  returned: when O(stage=machine)
  type: list
  elements: str
check_mode:
  description: Whether this was a dry run, for a task, a role or a play.
  returned: when O(stage=machine)
  type: bool
cgroup:
  description: Which control groups limit devices.
  returned: when O(stage=machine)
  type: str
  sample: v2
network:
  description: The containers' network, with network, prefix_length, gateway and addresses.
  returned: when O(stage=machine)
  type: dict
  sample: {network: 10.0.80.0/24, prefix_length: 24, gateway: 10.0.80.1, addresses: [10.0.80.10, 10.0.80.254]}
bridge_stands:
  description: Whether the bridge is there, up, and has the gateway's address.
  returned: when O(stage=machine)
  type: bool
id_maps:
  description: The line that each file of subordinate ids must have.
  returned: when O(stage=machine)
  type: dict
  sample: {/etc/subuid: "root:1000000:65536000", /etc/subgid: "root:1000000:65536000"}
gpus:
  description: NVIDIA GPUs with address, uuid, arch and model.
  returned: when O(stage=machine)
  type: list
  elements: dict
absent_nodes:
  description: Device nodes of GPUs that are not there, or have another driver's numbers.
  returned: when O(stage=machine)
  type: list
  elements: str
  sample: [/dev/nvidia0]
lxc_net:
  description: Whether LXC's own network can run here, which it does not within an LXC container.
  returned: when O(stage=machine)
  type: bool
missing_packages:
  description: Those of O(packages) that are not installed, and C(apparmor) where the kernel has it and it is not.
  returned: when O(stage=machine)
  type: list
  elements: str
liblxc:
  description: Version of liblxc.
  returned: when O(stage=services)
  type: str
  sample: 5.0.2
seconds:
  description: Seconds for each step.
  returned: success
  type: dict
  sample: {machine: 0.12}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.accelerator_host import preflight, selftest
from ..module_utils.change import Change
from ..module_utils.module import run
from ..module_utils.node.findings import outcome
from ..module_utils.spec import ArgumentSpec

SPEC = ArgumentSpec(
    dict(
        stage=dict(type="str", choices=["machine", "services"], default="machine"),
        lxcpath=dict(type="path", default="/var/lib/lxc"),
        state_folder=dict(type="path", default="/var/lib/hetero"),
        bridge=dict(type="str", default="hetero0"),
        make_bridge=dict(type="bool", default=True),
        network=dict(type="str", default="10.0.80.0/24"),
        gateway=dict(type="str", default=""),
        addresses=dict(type="list", elements="str", default=[]),
        unprivileged=dict(type="bool", default=True),
        gpu_overrides=dict(type="dict", default={}),
        packages=dict(type="list", elements="str", default=[]),
    )
)


def machine(params, change):
    plan = preflight.Plan(**{name: value for name, value in params.items() if name != "stage"})
    with change.step("machine"):
        found = preflight.look(plan)
    return outcome(found, "an accelerator host", dict(change.result, check_mode=change.check))


def services(params, change):
    with change.step("services"):
        facts = selftest.check(params["bridge"], params["gateway"])
    return dict(change.result, **facts)


def main():
    module = AnsibleModule(**SPEC.kwargs)

    def work(params, check):
        result = dict(machine=machine, services=services)[params["stage"]](params, Change(check))
        for note in result.get("notes", ()):
            module.warn(note)
        return result

    run(module, work)


if __name__ == "__main__":
    main()
