#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs given to a container and taken back. How that is done and proven is
module_utils/_hetero/hypervisors/lxc_gpus/attachment.py's.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: lxc_gpu_attach
short_description: Give GPUs to an LXC container, or take them back, proven
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Gives a container as many free GPUs as it asks for, or those that are named, and no others. Which are free is
    decided in one transaction of the host's table of allocations, after the kernel was asked which running container
    can open which GPU. Of any number of modules that run at the same time, one gets a GPU.
  - In a running container the GPU's node and those that all GPUs share are allowed in its device cgroup (v1 and v2) and
    made from the host's side, also in an unprivileged container. Then it is proven - by evaluation of the device
    cgroup, and by opening each node as the container's root - and each other GPU of the host is proven closed.
  - After a restart of the container or the host it has the same GPUs, found again by UUID and address; with
    O(persistent=false) it has not. A container that does not run gets them at its next start; with
    O(persistent=false) it is refused, for it would never have them.
  - Taken back means that the device cgroup denies it (read back), that its node is gone, that no process of the
    container has it open any more, and that it is free in the table. The shared nodes go with the container's last GPU.
  - If it is killed at any moment and run again, the result is the same. A new container of the same name has nothing of
    the old one's.
  - A container that can open GPUs that it was not given, by a rule of its own configuration, gets no more, and the GPUs
    that it can open are not given to others. M(hetero.compute.gpu_reconcile) finds such rules and closes them.
requirements:
  - root on the host
  - liblxc
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
  - hetero.compute.gpu_host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  container:
    description: Name of the container.
    type: str
    required: true
  state:
    description: Whether the container is to have the GPUs (V(attached)) or to lose them (V(detached)).
    type: str
    choices: [attached, detached]
    default: attached
  count:
    description: How many GPUs it is to have. Those that it has already count.
    type: int
  gpus:
    description:
      - The GPUs by PCI address, UUID or index.
      - With O(state=detached) the ones to take back; by default all that it has or can open.
    type: list
    elements: str
  gpu_arch:
    description: Only GPUs of this architecture, such as V(fermi).
    type: str
  share:
    description: Others may have the same GPUs, if they ask for shared ones too.
    type: bool
    default: false
  persistent:
    description: It has them after its restart, too. If not, it must run.
    type: bool
    default: true
  on_holders:
    description:
      - With O(state=detached), what is done about the container's processes that have a GPU open. Revoking a right does
        not close their files.
      - V(fail) lists them and changes nothing. V(wait) closes it to all others and waits for them. V(kill) closes it
        and ends them.
      - Processes that hold files in a unix socket or an io_uring may have a GPU open. They are waited for and named,
        and V(kill) does not end them.
    type: str
    choices: [fail, wait, kill]
    default: fail
  method:
    description:
      - How nodes are made in a running container. V(host) makes them from the host's side, whatever the container's
        capabilities are. V(lxc-attach) runs C(mknod) inside, under the container's own limits.
    type: str
    choices: [host, lxc-attach]
    default: host
  timeout:
    description: Seconds for other work on this container to end, and with O(on_holders=wait) for its processes.
    type: float
    default: 30
seealso:
  - module: hetero.compute.gpu_facts
  - module: hetero.compute.gpu_reconcile
  - module: hetero.compute.instance
"""

EXAMPLES = r"""
- name: Two fermi GPUs for a container
  hetero.compute.lxc_gpu_attach:
    container: ml-7
    count: 2
    gpu_arch: fermi

- name: This one, which others may have too
  hetero.compute.lxc_gpu_attach:
    container: viewer
    gpus: ["0000:05:00.0"]
    share: true

- name: Take back what it has, and end the programs that use it
  hetero.compute.lxc_gpu_attach:
    container: ml-7
    state: detached
    on_holders: kill
"""

RETURN = r"""
container:
  description: Name of the container.
  returned: success
  type: str
  sample: ml-7
holder:
  description: Its key in the table of allocations; a container that is made anew has another one.
  returned: success
  type: str
  sample: /var/lib/lxc/ml-7#0b0a9a1e8c7f4f6f
running:
  description: Whether it runs. If not, it gets its GPUs at its next start.
  returned: success
  type: bool
gpus:
  description: The GPUs that were asked for; with O(state=detached), those that it still has.
  returned: success
  type: list
  elements: dict
  contains:
    address: {description: PCI address., type: str, sample: "0000:05:00.0"}
    uuid: {description: 'UUID, where the driver says one.', type: str}
    index: {description: Number by which the driver counts., type: int}
    minor: {description: Minor of its device node., type: int}
    model: {description: Model., type: str, sample: Tesla M2090}
    arch: {description: Architecture., type: str, sample: fermi}
    numa_node: {description: 'NUMA node, or none.', type: int}
    share: {description: Whether others may have it too., type: bool}
    persistent: {description: Whether it has it after its restart., type: bool}
nodes:
  description: The device nodes in a running container, before and after. In check mode as they would be.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: Path inside., type: str, sample: /dev/nvidia0}
    rule: {description: Its numbers as device cgroups write them., type: str, sample: c 195:0}
    before:
      description: Whether its device cgroup allowed it (C(allowed)), and whether the node was there (C(node)).
      type: dict
      sample: {allowed: false, node: false}
    after: {description: The same afterwards., type: dict, sample: {allowed: true, node: true}}
    opens:
      description: What open() inside said, V(ok) or the name of an error; none where it was not asked.
      type: str
      sample: ok
isolation:
  description:
    - V(cgroup) where the device cgroup denies each other GPU of the host.
    - V(node-only) where only the absence of nodes keeps it from them, as in unprivileged containers without device
      rules.
  returned: success
  type: str
  sample: cgroup
others:
  description: The other GPUs of the host, each with C(address), C(state) (V(closed) or V(node-only)) and C(why).
  returned: success
  type: list
  elements: dict
  sample: [{"address": "0000:06:00.0", "state": "closed", "why": "its device cgroup denies it"}]
holders:
  description: With O(state=detached), the processes that had a GPU open and were waited for or ended.
  returned: success
  type: list
  elements: dict
  sample: [{"pid": 4711, "command": "python3"}]
notes:
  description: What a person should know besides.
  returned: success
  type: list
  elements: str
  sample: ["it runs since before its first GPU: stop and start it once, or a reboot typed inside loses its GPUs"]
libraries:
  description: NVIDIA's libraries inside, whose versions were compared with the host's driver.
  returned: success and O(state=attached)
  type: list
  elements: dict
  sample: [{"name": "libcuda.so.1", "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.390.157", "version": "390.157"}]
seconds:
  description: Seconds of each step.
  returned: success
  type: dict
  sample: {"allocate": 0.004, "open": 0.009}
failure:
  description: The error in parts. C(rejected) says of each GPU that was not given why.
  returned: failure
  type: dict
  sample: {"rejected": {"0000:05:00.0": "allocated to ml-6 since 3 d"}, "what": "wants 1 GPU, none free"}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.claims.host.allocation import GpuRequest
from ..module_utils._hetero.compute_host.gpu_site import gpu_site
from ..module_utils._hetero.core.argument_spec import GPU_HOST, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.hypervisors.lxc.liblxc import Container
from ..module_utils._hetero.hypervisors.lxc_gpus.attachment import attach, detach

SPEC = GPU_HOST + ArgumentSpec(
    dict(
        container=dict(type="str", required=True),
        state=dict(type="str", choices=["attached", "detached"], default="attached"),
        count=dict(type="int"),
        gpus=dict(type="list", elements="str"),
        gpu_arch=dict(type="str"),
        share=dict(type="bool", default=False),
        persistent=dict(type="bool", default=True),
        on_holders=dict(type="str", choices=["fail", "wait", "kill"], default="fail"),
        method=dict(type="str", choices=["host", "lxc-attach"], default="host"),
        timeout=dict(type="float", default=30),
    ),
    mutually_exclusive=[("count", "gpus")],
    required_if=[("state", "attached", ("count", "gpus"), True)],
)


def work(params, check):
    change, deadline = Change(check), Deadline(params["timeout"])
    with gpu_site(params, create=not check) as site:
        container = Container(params["container"], site.lxcpaths[0])
        names = tuple(params["gpus"] or ())
        if params["state"] == "detached":
            return detach(site, container, names, change, deadline, params["on_holders"])
        wanted = GpuRequest(params["count"], params["gpu_arch"], names, params["share"])
        return attach(site, container, wanted, change, deadline, params["persistent"], params["method"])


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
