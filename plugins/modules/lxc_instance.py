#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances in LXC containers with GPUs; claims are accelerator_host/claiming.py's, their life is instances.py's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lxc_instance
short_description: Provide an instance in an LXC container, with GPUs of its own
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Claims memory, processors, disk, GPUs and an address of the host for an instance of an owner, all in one
    transaction, as its flavor asks for them.
  - Makes a container from an image, starts it, gives it its GPUs, and proves that it can open these and no others.
  - An instance is running when it answers ssh with the host key that was put into its root.
  - What never ran and cannot be brought up is taken back, so that nothing of it stays claimed; an instance that ran
    before keeps its claim, in state C(error).
  - Run again after it was killed anywhere, it goes on.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
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
      - Name of the instance; it becomes its container's name and host name. 1 to 63 of a-z, 0-9 and C(-), with a letter
        or digit first and last.
      - With any state but V(present), the name of a request means all its instances.
    type: str
    required: true
  state:
    description:
      - V(present) claims, and makes nothing.
      - V(running) claims where O(flavor) is given, makes what is not there, starts it and gives it its GPUs.
      - V(stopped) ends the container and keeps all that is claimed.
      - V(rebooted) ends and starts it.
      - V(rebuilt) makes it anew, of another O(image) or with another O(ssh_public_key), or because of O(fresh); what is
        in it goes.
      - V(extended) sets the end of its lease to O(lease_hours) from now.
      - V(absent) ends it, removes its root, and frees all that was claimed.
    type: str
    choices: [present, running, stopped, rebooted, rebuilt, extended, absent]
    default: running
  owner:
    description:
      - Who asks. Needed to claim.
      - Where given with other states, another owner's instance is refused.
    type: str
  flavor:
    description:
      - The flavor (instance type) with its C(name), and any of C(memory_mb), C(vcpus), C(local_gb), C(flavorid),
        C(cpu_arch), C(cpu_info) and C(extra_specs). Needed to claim.
      - Of C(extra_specs), C(hypervisor) must name LXC (C(s== LXC)), C(gpus) is how many GPUs it gets (C(= 2)), and
        C(gpu_arch) of which architecture (C(s== fermi)).
    type: dict
  image:
    description:
      - The image that the container is made from, by its name in the host's store, or by a path on the host. Without
        it, the host's default.
    type: str
  ssh_public_key:
    description: The OpenSSH public key that may log in as root. Needed to claim.
    type: str
  count:
    description: How many containers. With more than one the instances are C(NAME-1) to C(NAME-N).
    type: int
    default: 1
  partial:
    description: Take fewer than O(count) where there is not enough. Otherwise it is all or nothing.
    type: bool
    default: false
  lease_hours:
    description:
      - Hours until the claim expires. Without it the claim stays until it is ended. A claim that exists keeps its time.
      - With O(state=extended), hours from now, and V(0) for no end.
    type: float
  how:
    description: With O(state=rebooted) and O(state=stopped), whether the container's own init ends it (V(soft)), or the
      host by force (V(hard)), or the second where the first fails (V(auto)).
    type: str
    choices: [auto, soft, hard]
    default: auto
  soft_timeout:
    description: Seconds that its init has to end.
    type: float
    default: 30
  fresh:
    description: With O(state=rebuilt), make it anew although neither image nor key is another.
    type: bool
    default: false
  timeout:
    description: Seconds for each instance, until ssh answers.
    type: float
    default: 300
  background:
    description: Return at once with what is needed to follow the work. The action plugin of this module sets it.
    type: bool
    default: false
seealso:
  - module: hetero.compute.host_info
  - module: hetero.compute.lxc_gpu_attach
"""

EXAMPLES = r"""
- name: A container with two Fermi GPUs
  hetero.compute.lxc_instance:
    instance: ml-8
    owner: alice
    flavor:
      name: cg1.xlarge
      memory_mb: 16384
      vcpus: 8
      local_gb: 160
      extra_specs: {hypervisor: s== LXC, gpus: "= 2", gpu_arch: s== fermi}
    image: debian-12-container
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
  register: ml

- name: Reboot it
  hetero.compute.lxc_instance:
    instance: ml-8
    state: rebooted

- name: Give it back
  hetero.compute.lxc_instance:
    instance: ml-8
    state: absent
"""

RETURN = r"""
instances:
  description: The instances of the request.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: Name of the instance and of its container., type: str}
    request: {description: The name that was asked for., type: str}
    name: {description: Name of the host., type: str}
    kind: {description: Always lxc., type: str}
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
    gpus: {description: Addresses of its GPUs., type: list, elements: str}
    isolation: {description: 'How other GPUs are closed to it: cgroup or node-only.', type: str}
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
    - {instance: ml-8, node: gpu1, phase: '', text: container started, seconds: 0.3}
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

import os
from dataclasses import fields

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.accelerator_host import instances
from ..module_utils.accelerator_host.claiming import Wish, line, present
from ..module_utils.accelerator_host.host import Host
from ..module_utils.accelerator_host.job import in_background
from ..module_utils.change import Change
from ..module_utils.module import run
from ..module_utils.spec import HOST, ArgumentSpec

SPEC = HOST + ArgumentSpec(
    {
        "instance": {"type": "str", "required": True},
        "state": {
            "type": "str",
            "choices": ["present", "running", "stopped", "rebooted", "rebuilt", "extended", "absent"],
            "default": "running",
        },
        "owner": {"type": "str"},
        "flavor": {"type": "dict"},
        "image": {"type": "str"},
        "ssh_public_key": {"type": "str", "no_log": False},
        "count": {"type": "int", "default": 1},
        "partial": {"type": "bool", "default": False},
        "lease_hours": {"type": "float"},
        "how": {"type": "str", "choices": ["auto", "soft", "hard"], "default": "auto"},
        "soft_timeout": {"type": "float", "default": 30},
        "fresh": {"type": "bool", "default": False},
        "timeout": {"type": "float", "default": 300},
        "background": {"type": "bool", "default": False},
    },
    required_if=[
        ("state", "present", ("owner", "flavor", "ssh_public_key")),
        ("state", "extended", ("lease_hours",)),
    ],
    required_by={"flavor": ("owner", "ssh_public_key")},
)
VERBS = {
    "running": instances.running,
    "stopped": instances.stopped,
    "rebooted": instances.rebooted,
    "rebuilt": instances.rebuilt,
    "extended": instances.extended,
    "absent": instances.absent,
}
#: What is over at once, and so is not followed.
QUICK = ("present", "extended")


def options(params):
    return instances.Options(**{one.name: params[one.name] for one in fields(instances.Options) if one.name in params})


def wish(params, config):
    given = {field.name: params[field.name] for field in fields(Wish) if field.name in params}
    return Wish(params["instance"], **dict(given, image=params["image"] or config["default_image"] or ""))


def work(params, check):
    """Claim where that is asked for, then do what `state` says; returns the module's result."""
    change = Change(check)
    actor = f"{params['owner'] or 'lxc_instance'} pid {os.getpid()}"
    with Host(params["config"], actor, create=not check) as host:
        claimed = {"lines": []}
        if params["flavor"] and params["state"] in ("present", "running"):
            with change.step("claim"):
                claimed = present(host, wish(params, host.config), change)
        # What a dry run only would have claimed is not there to be looked at.
        if params["state"] == "present" or (check and claimed.get("new")):
            if params["state"] == "running":
                claimed["lines"] += [would_be_made(host.name, one) for one in claimed["instances"]]
            return dict(claimed, **change.result)
        done = VERBS[params["state"]](host, params["instance"], options(params), change)
        return dict(done, lines=(claimed["lines"] if claimed.get("new") else []) + done["lines"])


def would_be_made(node, instance):
    text = f"root would be made from {instance['image']}, container started, its GPUs opened"
    return line(instance["instance"], node, text)


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
