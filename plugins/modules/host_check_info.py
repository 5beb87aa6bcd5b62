#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can give GPUs to containers, and whether a host has what they need. Looks, and changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_check_info
short_description: Say what is wrong with a compute host
version_added: 0.1.0
description:
  - With O(stage=machine), returns at once all that keeps a machine from giving GPUs to LXC containers.
  - With O(stage=bridge), returns the rules of nftables that keep instances to their addresses, and away from the host.
  - With O(stage=services), fails where a host lacks LXC, its bridge, or a device node of a GPU.
  - Changes nothing. Used by roles P(hetero.compute.gpu_lxc#role) and P(hetero.compute.kvm_guests#role).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.planned
notes:
  - Its former name, C(hetero.compute.host_check), leads here.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  stage:
    description: V(machine) before the set-up, V(bridge) for a part of it, V(services) after it.
    type: str
    choices: [machine, bridge, services]
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
    description: Whether the role makes the bridge.
    type: bool
    default: true
  network:
    description: Network of the containers.
    type: str
    default: 10.0.80.0/24
  gateway:
    description: The containers' router; empty for the bridge's own address, which is the first of O(network), if the
      role makes the bridge.
    type: str
    default: ""
  addresses:
    description: First and last address that containers get; empty for all from the tenth on.
    type: list
    elements: str
    default: []
  local_gb:
    description: Disk space in GiB that all instances together may have. A note says so if more is promised than exists.
    type: int
  unprivileged:
    description: Whether containers are to be unprivileged.
    type: bool
    default: true
  gpu_overrides:
    description: What the operator says of GPUs, by address, UUID, index or device id.
    type: dict
    default: {}
  kind:
    description: Whether the bridge is that of containers or of guests, for O(stage=bridge).
    type: str
    choices: [lxc, kvm]
    default: lxc
  nat:
    description: Whether instances on a bridge that the role makes reach other networks by the host's address.
    type: bool
    default: true
  open_ports:
    description: Ports of the host that instances may use, as C(tcp/PORT) or C(udp/PORT).
    type: list
    elements: str
    default: []
  closed_networks:
    description:
      - Networks that the host does not forward to from instances.
      - The networks that the host itself is in, and C(169.254.0.0/16), are closed in any case.
    type: list
    elements: str
    default: []
  open_networks:
    description: Networks, or addresses, that are open although they lie in a closed one.
    type: list
    elements: str
    default: []
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Can this machine give GPUs to containers?
  hetero.compute.host_check_info:
    network: 10.0.80.0/24

- name: Has it what they need?
  hetero.compute.host_check_info:
    stage: services
"""

RETURN = r"""
defects:
  description: What keeps the machine from being a compute host, with thing, what and remedy.
  returned: failure, when O(stage=machine)
  type: list
  elements: dict
notes:
  description: What is worth knowing and stops nothing.
  returned: when O(stage) is V(machine) or V(bridge)
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
rules:
  description: The text that nftables loads.
  returned: when O(stage=bridge)
  type: str
rules_loaded:
  description: Whether just these rules are loaded.
  returned: when O(stage=bridge)
  type: bool
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

from ..module_utils._hetero.claims.host.config import PART
from ..module_utils._hetero.core.argument_spec import PLANNED, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.findings import outcome
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.nodes import plan_check
from ..module_utils._hetero.nodes.compute_host import bridge, preflight, selftest

SPEC = PLANNED + ArgumentSpec(
    dict(
        stage=dict(type="str", choices=["machine", "bridge", "services"], default="machine"),
        lxcpath=dict(type="path", default="/var/lib/lxc"),
        state_folder=dict(type="path", default="/var/lib/hetero"),
        bridge=dict(type="str", default="hetero0"),
        make_bridge=dict(type="bool", default=True),
        network=dict(type="str", default="10.0.80.0/24"),
        gateway=dict(type="str", default=""),
        addresses=dict(type="list", elements="str", default=[]),
        local_gb=dict(type="int"),
        unprivileged=dict(type="bool", default=True),
        gpu_overrides=dict(type="dict", default={}),
        kind=dict(type="str", choices=["lxc", "kvm"], default="lxc"),
        nat=dict(type="bool", default=True),
        open_ports=dict(type="list", elements="str", default=[]),
        closed_networks=dict(type="list", elements="str", default=[]),
        open_networks=dict(type="list", elements="str", default=[]),
    )
)
#: What is looked at whatever the machine is, and no part of a plan for it.
OF_THE_PLAY = ("stage", "images", "reap_interval", "mistakes", "settings")


def plan_of(params):
    return preflight.Plan(**{name: value for name, value in params.items() if name not in OF_THE_PLAY})


def machine(params, change):
    with change.step("machine"):
        found = preflight.look(plan_of(params))
        plan_check.of_role("gpu_lxc", params, found)
        plan_check.settings("gpu_lxc", PART, params["settings"], found)
    return outcome(found, "a compute host", dict(change.result, check_mode=change.check))


def rules(params, change):
    with change.step("bridge"):
        facts = bridge.look(plan_of(params))
    return dict(change.result, **facts)


def services(params, change):
    with change.step("services"):
        facts = selftest.check(params["bridge"], params["gateway"])
    return dict(change.result, **facts)


def main():
    module = AnsibleModule(**SPEC.kwargs)

    def work(params, check):
        result = dict(machine=machine, bridge=rules, services=services)[params["stage"]](params, Change(check))
        for note in result.get("notes", ()):
            module.warn(note)
        return result

    run(module, work)


if __name__ == "__main__":
    main()
