#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show a host's GPUs, instances and capacity; put together in module_utils/_hetero/compute_host/info.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Show the GPUs of a compute host, who has them, and what is left
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Shows the GPUs that are in the host and who has them, the instances on it, and what of its memory, processors and
    disk is free.
  - Changes nothing. A host on which nothing was claimed yet has everything free.
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
  instance:
    description: Show only this instance, or this request with all its instances, and its GPUs.
    type: str
  events:
    description: How many of its newest events each instance comes with.
    type: int
    default: 0
  follow:
    description: Return RV(follow) as well.
    type: bool
    default: false
  owner:
    description: For whom RV(offers) is.
    type: str
    default: ''
  flavors:
    description: Flavors by name, as filter P(hetero.compute.flavors#filter) returns them, of each of which RV(offers)
      says how many instances O(owner) could have now.
    type: dict
    default: {}
seealso:
  - module: hetero.compute.instance
  - module: hetero.compute.gpu_facts
"""

EXAMPLES = r"""
- name: Who has which GPU
  hetero.compute.host_info:
  register: host

- name: Show the free ones
  ansible.builtin.debug:
    msg: "{{ host.gpus | rejectattr('holder') | map(attribute='address') }}"
"""

RETURN = r"""
name:
  description: Name of the host.
  returned: always
  type: str
hypervisor:
  description: What runs instances on it, as flavors ask for it; of a host that has both, LXC.
  returned: always
  type: str
  sample: LXC
hypervisors:
  description: All that run instances on it.
  returned: always
  type: list
  elements: str
  sample: [LXC]
cpu_arch:
  description: Architecture of its processors.
  returned: always
  type: str
  sample: x86_64
driver_version:
  description: Version of NVIDIA's driver, or none.
  returned: always
  type: str
unsupported:
  description: Why no GPU of this machine can be given away, or none.
  returned: always
  type: str
capacity:
  description: What instances may have together, and what of it is free, for C(memory_mb), C(vcpus) and C(local_gb).
  returned: always
  type: dict
  sample: {memory_mb: {total: 65536, free: 49152}, vcpus: {total: 32, free: 24}, local_gb: {total: 640, free: 480}}
disk_gb:
  description: GiB that the file system of the instances' disks has; C(capacity) may promise more, as disks are sparse.
  returned: always
  type: int
  sample: 640
gpus:
  description: The GPUs.
  returned: always
  type: list
  elements: dict
  contains:
    address: {description: PCI address., type: str}
    uuid: {description: 'UUID, or none.', type: str}
    index: {description: Number by which the driver counts., type: int}
    minor: {description: Minor of its device node., type: int}
    vendor: {description: Vendor., type: str}
    model: {description: Model., type: str}
    arch: {description: 'Architecture, such as fermi.', type: str}
    driver: {description: 'The driver it is bound to, or none.', type: str}
    numa_node: {description: 'NUMA node, or none.', type: int}
    healthy: {description: Whether it works., type: bool}
    why_unhealthy: {description: 'Why not, or none.', type: str}
    unsupported: {description: 'Why it is never given away, or none.', type: str}
    holder: {description: 'Who has it, or none.', type: str}
    instance: {description: 'The instance of this host that has it, or none.', type: str}
    since: {description: 'Since when (seconds since 1970), or none.', type: float}
instances:
  description: The instances, by name.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: Name of the instance., type: str}
    request: {description: The request it belongs to., type: str}
    name: {description: Name of the host., type: str}
    kind: {description: 'What it is: lxc or kvm.', type: str}
    ip: {description: 'Its address, once it has one.', type: str}
    owner: {description: Its owner., type: str}
    flavor: {description: Name of its flavor., type: str}
    image: {description: Its image., type: str}
    created: {description: When it was claimed (seconds since 1970)., type: float}
    expires: {description: 'When the claim expires, or none.', type: float}
    host_key: {description: 'The ssh host key put into its root, once there is one.', type: str}
    image_hash: {description: 'Hash of its image, once its root is made.', type: str}
    state:
      description: V(claimed), V(building), V(rebuilding), V(starting), V(running), V(shutting down), V(stopped),
        V(ending) or V(error).
      type: str
    mover:
      description: The run of playbook C(hetero.compute.migrate_instance) that moves it, or moved it last
        (M(hetero.compute.instance_copy), O(hetero.compute.instance_copy#module:run)), or none.
      type: str
    departure:
      description: Of one that leaves for another host, what tells that departure from all others; of one that came by a
        move, that of the root of which its own was copied; or none.
      type: str
    leaves_for: {description: 'The host for which it leaves this one, or an empty text.', type: str}
    console: {description: Where on the host lies what its console showed., type: str}
    console_bytes: {description: 'Its length, or none where there is no such file yet.', type: int}
    note: {description: What was noted with the state., type: str}
    since: {description: Since when it is in this state (seconds since 1970)., type: float}
    since_seconds: {description: For how many seconds., type: float}
    lease_seconds: {description: 'For how many seconds more, below 0 where it is over, or none.', type: float}
    gpus: {description: Addresses of its GPUs., type: list, elements: str}
    memory_mb: {description: Its memory., type: int}
    vcpus: {description: Its processors., type: int}
    local_gb: {description: Its disk., type: int}
    events: {description: 'Its newest events, the oldest of them first.', type: list, elements: dict}
claims:
  description: The claims of these instances, in the words of M(hetero.compute.board_info).
  returned: always
  type: list
  elements: dict
unclaimed:
  description:
    - Containers and guests that were made on the host, and of which its database knows no claim. It may have been put
      back from an older copy. Only those of O(instance), where that is given. So are those of which no more is seen
      than the record of a claim; what holds them may not be mounted.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance., type: str}
    name: {description: The host., type: str}
    text: {description: 'What is seen of it, and what to do.', type: str}
    kind: {description: 'V(lxc) for a container, V(kvm) for a guest.', type: str}
    created: {description: 'When it was claimed (unix seconds), by the record of its claim, or none.', type: float}
    leaves_for: {description: 'The host for which it leaves this one by that record, or an empty text.', type: str}
    half: {description: 'Whether only half of a root is there, which runs nowhere; left out of all others.', type: bool}
ended:
  description:
    - Instances of O(instance) that the node ended because their lease was over, where it has none of them any more.
      Empty without O(instance).
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance., type: str}
    owner: {description: Whose it was., type: str}
    time: {description: When it was ended (seconds since 1970)., type: float}
queue:
  description:
    - Requests that wait for what the node has, in the order in which they are served. Empty where only some were asked
      for.
  returned: always
  type: list
  elements: dict
  contains:
    request: {description: The request., type: str}
    owner: {description: Who asks., type: str}
    flavor: {description: Name of its flavor., type: str}
    need: {description: How many instances it lacks., type: int}
    position: {description: Its place among those that want some of the same; 1 is the first., type: int}
    priority: {description: The highest goes first., type: int}
    asked: {description: Since when it waits (seconds since 1970)., type: float}
    held: {description: For how many instances enough is free and held for it here., type: int}
    expected:
      description: When it can start (seconds since 1970), by the ends of leases, or none where these do not tell.
      type: float
    enough:
      description: Whether enough can become free for it as long as no operator does anything. If not, nothing is held
        for it.
      type: bool
    stuck:
      description: If not, what it could have if an operator made it free, the first ones, as C(name) and C(why).
      type: list
      elements: dict
reservations:
  description:
    - What is reserved by date and not over, by the table of the node's role, the next first. Empty where only some were
      asked for.
  returned: always
  type: list
  elements: dict
  contains:
    owner: {description: For whom., type: str}
    start: {description: From when (seconds since 1970)., type: float}
    end: {description: Until when (seconds since 1970)., type: float}
    text: {description: 'What it is, for whom, when and why, in words.', type: str}
    lacks:
      description: Why not all of it can be had by present leases, with the first of those who have it longer, or none.
      type: str
offers:
  description:
    - Of each of O(flavors), how many instances O(owner) could have now with a short lease, by what is reserved by date,
      by those who wait, and by the limits of O(owner), where there is any of these. Else, and where only some were
      asked for, empty. Whether that many are free, and in order, is not looked at.
  returned: always
  type: dict
  contains:
    may: {description: How many., type: int}
    why: {description: What keeps it from more., type: list, elements: str}
  sample: {tp64.8x8: {may: 2, why: ["held for lab of bob, which waits and goes first"]}}
follow:
  description: What it takes to be told of what happens to O(instance) from then on, for action plugins.
  returned: with O(follow)
  type: dict
  contains:
    state_db: {description: 'Path of the database.', type: str}
    python: {description: 'Path of the Python that runs the module.', type: str}
    after: {description: Number of the newest event by then., type: int}
    node: {description: Name of the host., type: str}
alike:
  description:
    - Where the node has nothing of O(instance), of each owner the instance or request whose name is most similar to it.
      Empty without O(instance).
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance or request., type: str}
    owner: {description: Whose it is., type: str}
"""

import sys

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.compute_host.host import Host
from ..module_utils._hetero.compute_host.host_queue import HostQueue
from ..module_utils._hetero.compute_host.info import information
from ..module_utils._hetero.core.argument_spec import HOST, ArgumentSpec
from ..module_utils._hetero.core.module import run

SPEC = HOST + ArgumentSpec(
    dict(
        instance=dict(type="str"),
        events=dict(type="int", default=0),
        follow=dict(type="bool", default=False),
        owner=dict(type="str", default=""),
        flavors=dict(type="dict", default={}),
    )
)


def work(params, check):
    with Host(params["config"], create=False) as host:
        queue = None if params["instance"] else HostQueue(host)
        waits, reserved = (queue.shown()[0], queue.reserved()) if queue else ([], [])
        offers = queue.offers(params["owner"], params["flavors"]) if queue else {}
        # what happens while this is put together is told, too
        told = dict(host.store.followed(), node=host.name, python=sys.executable) if params["follow"] else None
        found = information(host, params["instance"], params["events"])
        follow = dict(follow=told) if told else {}
        return dict(changed=False, queue=waits, reservations=reserved, offers=offers, **found, **follow)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
