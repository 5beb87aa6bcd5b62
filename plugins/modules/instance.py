#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances on boards, in containers and in guests, each verb as one call;
module_utils/_hetero/instances/kinds/registry.py knows who does it.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: instance
short_description: Provide an instance on a board, in a container or in a guest
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Does a whole verb in one call on the node that owns the hardware.
  - Of a board (on its proxy node) it claims one that fits, makes ready what it boots from, switches it on and waits
    until it proves its own ssh host key. Where the hardware of a board is at fault, the next board that fits is
    tried, but for one that was named (O(board)). Where the image is, the board is given back.
  - Of a container, it claims memory, processors, disk, GPUs and an address of the host in one transaction, makes it
    from an image, starts it, gives it its GPUs, and proves that it can open these and no others.
  - Of a guest, the same with PCI devices, which go to vfio-pci before it starts and back to the driver that they were
    on when it is given back; the host's own driver never gets what a guest has had. A device that a container or
    another guest has is not given. The kernel gets the guest's address as C(ip=).
  - An instance is running when it answers ssh with the host key that was put into its root.
  - What never ran and cannot be brought up is taken back, so that nothing of it stays claimed. A board stays claimed
    where its proxy node, the network or a PDU is at fault, and the next run goes on there; the message says so. What
    ever ran keeps its node and its data, whatever is at fault.
  - Run again after it was killed anywhere, it goes on.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.created
  - hetero.compute.instance
attributes:
  check_mode:
    support: full
    details:
      - Of a board, with O(state=absent), it says what still stands in the way, but does not fail for it, as nothing
        was stopped.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A reboot is a reboot each time, and so is a rebuild with O(fresh=true), or O(state=migrated) without O(board).
options:
  asks:
    description: Further options by name. The controller reads it, so that Ansible compiles one expression for each node
      where a play keeps what it asks for in one variable.
    type: dict
  kind:
    description:
      - What it runs in.
      - Without it, what the C(hypervisor) of O(flavor) names (LXC a container, KVM a guest); else what the node has,
        boards where it is a proxy node. On a machine that is both proxy node and compute host it is needed where
        there is no O(flavor).
    type: str
    choices: [board, container, guest]
  instance:
    description:
      - Name of the instance; it becomes its host name, and that of its container or domain. 1 to 63 of a-z, 0-9 and
        C(-), with a letter or digit first and last. A guest's is neither a number nor a UUID, by which libvirt
        would find another domain.
      - With any state but V(present), the name of a request means all its instances.
    type: str
    required: true
  state:
    description:
      - V(present) claims, and makes nothing.
      - V(running) claims where O(flavor) is given, makes what is not there, boots or starts it, and gives it its
        devices. A container or guest that ran and is gone is not made anew; V(rebuilt) with O(fresh) does that.
      - V(stopped) ends it, and keeps all that is claimed and what is in its root.
      - V(rebooted) boots it anew.
      - V(rebuilt) makes it anew, of another O(image) or with another O(ssh_public_key), or because of O(fresh); what is
        in it goes, also its O(user_data).
      - V(migrated) has an instance on a board go to another board of its proxy node, with its root, and run there as
        the same machine at another address. The old board is proven off first. Where the new one does not bring it up,
        it runs on the old one again, and the call fails. Run again without O(board), it moves once more. Of a container
        or guest it starts what M(hetero.compute.instance_copy) has copied from another host.
      - V(extended) sets the end of its lease to O(lease_hours) from now.
      - V(absent) ends it, removes what was made for it, wipes disks, puts devices back, and frees all that was claimed.
    type: str
    choices: [present, running, stopped, rebooted, rebuilt, migrated, extended, absent]
    default: running
  flavor:
    description:
      - The flavor (instance type) with its C(name), and any of C(memory_mb), C(vcpus), C(local_gb), C(flavorid),
        C(cpu_arch), C(cpu_info) and C(extra_specs). Needed to claim.
      - Of a container, C(hypervisor) in C(extra_specs) names LXC (C(s== LXC)), C(gpus) is how many GPUs it gets (C(=
        2)), and C(gpu_arch) of which architecture (C(s== fermi)).
      - Of a guest, C(hypervisor) names KVM (C(s== KVM)), and C(pci_passthrough:alias) says which devices it gets
        (C(a1:1), or C(a1:2, a2:1)), by the aliases of the host. Only devices that are on vfio-pci or pci-stub are
        given, and all functions of a card go together.
    type: dict
  image:
    description: Name of an image in the node's store. Needed to claim a board; of others, the host's default without
      it.
    type: str
  board:
    description: Id of the one board that is wanted, when it is claimed, or with O(state=migrated). Without it, any that
      fits.
    type: int
  boot_source:
    description:
      - Where a board's root is to lie. V(nfs) is the proxy node, V(disk) the board's own disk.
      - Counts when the instance is claimed.
    type: str
    choices: [nfs, disk]
    default: nfs
  attempts:
    description: Boards that are tried where hardware is at fault.
    type: int
    default: 2
  wipe_method:
    description: How a board's disks are wiped, as O(hetero.compute.board_wipe#module:method). The default is the
      proxy's.
    type: str
    choices: [discard, zero, secure_erase]
  wipe_verify:
    description: How that is proven, as O(hetero.compute.board_wipe#module:verify). The default is the proxy's.
    type: str
    choices: [full, sample, none]
  devices:
    description:
      - Addresses of the devices that a guest is to get, as many as its flavor asks for. Without them, any that fit.
      - Counts when the instance is claimed.
    type: list
    elements: str
    default: []
  asked:
    description:
      - Since when a request waits, in seconds since 1970, as M(hetero.compute.ticket) returned it. Those who wait
        longer go first; without it, all who wait do.
      - Counts when the instance is claimed.
    type: float
  priority:
    description: Of those who wait the highest goes first, from -1000 to 1000. Counts when the instance is claimed.
    type: int
    default: 0
  never_ran:
    description: With O(state=absent), an instance that ever ran is refused, and nothing of it is touched.
    type: bool
    default: false
  only_key:
    description:
      - One of the public keys of the instance that is meant. One of this name that has another key, as another request
        made it, is refused, and nothing of it is touched. Of several instances those that have the key are worked on,
        and the others are passed over.
      - Without it, an instance with any key is meant.
    type: str
  boards_file:
    description: The table of a proxy node's boards.
    type: path
    default: /tftpboot/tilera_boards
  config:
    description: The node's configuration. The default is C(/etc/hetero/proxy.json) of boards, else
      C(/etc/hetero/host.json).
    type: path
  state_db:
    description: A proxy node's database.
    type: path
    default: /var/lib/hetero/state.db
seealso:
  - module: hetero.compute.ticket
  - module: hetero.compute.board_info
  - module: hetero.compute.host_info
"""

EXAMPLES = r"""
- name: A board for jackie, up and proven
  hetero.compute.instance:
    instance: jackie
    kind: board
    owner: alice
    flavor:
      name: tp64.8x8
      memory_mb: 16384
      vcpus: 10
      local_gb: 500
      cpu_arch: tilepro64
      cpu_info: {geometry: 8x8}
    image: debian
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
  register: jackie

- name: A container with two Fermi GPUs
  hetero.compute.instance:
    instance: ml-8
    owner: alice
    flavor:
      name: cg1.xlarge
      memory_mb: 16384
      vcpus: 8
      local_gb: 160
      extra_specs: {hypervisor: s== LXC, gpus: "= 2", gpu_arch: s== fermi}
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"

- name: A guest with a GPU
  hetero.compute.instance:
    instance: ml-9
    owner: alice
    flavor:
      name: kg1.large
      memory_mb: 8192
      vcpus: 4
      local_gb: 40
      extra_specs: {hypervisor: s== KVM, "pci_passthrough:alias": "a1:1"}
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"

- name: Another image
  hetero.compute.instance:
    instance: jackie
    image: debian-13
    state: rebuilt

- name: Another board, with all that is in its root
  hetero.compute.instance:
    instance: jackie
    board: 7
    state: migrated

- name: Give it back
  hetero.compute.instance:
    instance: ml-8
    state: absent
"""

RETURN = r"""
instances:
  description: The instances of the request, as the last step left them.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: Name of the instance., type: str}
    request: {description: The name that was asked for., type: str}
    name: {description: Name of its board or host., type: str}
    kind: {description: 'Of containers V(lxc), of guests V(kvm).', type: str}
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
    until: {description: 'The end of its lease in words; of one without an end only with O(state=extended).', type: str}
    board: {description: Id of its board., type: int}
    phases: {description: Seconds of each phase of a board's boot., type: dict}
    power_proof: {description: What the outlet and the board said of its power., type: dict}
    watts:
      description: What its board drew when the outlet's meter was last read (W).
      returned: where the device tells
      type: float
    energy_kwh:
      description: What its board has drawn for it, since the first reading after it was switched on (kWh). With
        O(state=absent), all of it.
      returned: where the device tells
      type: float
    console: {description: Where on a host lies what the console of a container or guest showed., type: str}
    console_bytes: {description: 'Its length, or none where there is no such file yet.', type: int}
    gpus: {description: Addresses of a container's GPUs., type: list, elements: str}
    isolation: {description: 'How other GPUs are closed to a container: cgroup or node-only.', type: str}
    devices: {description: Addresses of a guest's PCI devices., type: list, elements: str}
    changed: {description: Whether anything was changed of a board by the last step., type: bool}
    failed: {description: Whether it failed., type: bool}
    blame: {description: 'Whose fault it was, of a board: proxy, network, image, board or instance.', type: str}
    error: {description: Why., type: str}
    evidence: {description: 'What was seen, of a board that failed.', type: dict}
new:
  description: The instances that were claimed just now, in a container or guest.
  returned: when something may have been claimed
  type: list
  elements: str
left:
  description:
    - With O(state=absent), of containers and guests, to which host those instances went that moved since they were
      looked up (O(created)), or that were about to. They may run there.
  returned: when something was to be ended
  type: dict
blame:
  description: The worst of the boards' blames in the last step.
  returned: always
  type: str
step:
  description: The step that failed.
  returned: failure
  type: str
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: running, text: ssh answers, seconds: 6.7}
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

from ..module_utils._hetero.boards.disk.wipe_disk import METHODS, PROOFS
from ..module_utils._hetero.core.argument_spec import INSTANCE, PROXY_CLAIMS, QUICK, ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.instances.kinds.registry import kind_of
from ..module_utils._hetero.site.kinds import KINDS

SPEC = (
    PROXY_CLAIMS
    + INSTANCE
    + ArgumentSpec(
        dict(
            asks=dict(type="dict"),
            kind=dict(type="str", choices=list(KINDS)),
            config=dict(type="path"),
            board=dict(type="int"),
            boot_source=dict(type="str", choices=["nfs", "disk"], default="nfs"),
            attempts=dict(type="int", default=2),
            wipe_method=dict(type="str", choices=list(METHODS)),
            wipe_verify=dict(type="str", choices=list(PROOFS)),
            devices=dict(type="list", elements="str", default=[]),
            asked=dict(type="float"),
            priority=dict(type="int", default=0),
            never_ran=dict(type="bool", default=False),
            only_key=dict(type="str", no_log=False),
        )
    )
)


def work(params, check):
    return kind_of(params).work(params, check)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    if module.params["asks"] is not None:
        module.fail_json(msg="asks: is read by the action plugin of this name only: give its options themselves")
    if not module.params["background"] or module.check_mode or module.params["state"] in QUICK:
        run(module, work)
    run(module, lambda params, check: kind_of(params).in_background(module))


if __name__ == "__main__":
    main()
