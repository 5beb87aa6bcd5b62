#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances on boards, each verb as one call; what a verb does is boards/instances.py's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_instance
short_description: Provide an instance on a board of a proxy node
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Does a whole verb in one call. It claims boards for an instance of an owner, makes ready what they boot from,
    switches them on and waits until each proves its own ssh host key; stops, reboots and rebuilds it; or ends it, which
    switches its boards off, removes root, export and boot files, wipes disks and frees the boards.
  - Where the hardware of a board is at fault, the next board that fits is tried. Where the image is, the boards are
    given back. An instance that ever ran keeps its boards and roots, whatever is at fault.
  - Each step is a module of its own as well (M(hetero.compute.board_claim), M(hetero.compute.board_image),
    M(hetero.compute.tilera_boot), M(hetero.compute.board_wipe), M(hetero.compute.board_rebuild),
    M(hetero.compute.board_lease)).
  - Run again after it was killed anywhere, it goes on.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.created
  - hetero.compute.instance
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details:
      - With O(state=absent) it says what still stands in the way, but does not fail for it, as nothing was stopped.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A reboot is a reboot each time, and so is a rebuild with O(fresh=true).
options:
  instance:
    description:
      - Name of the instance; it becomes the board's host name. 1 to 63 of a-z, 0-9 and C(-), with a letter or digit
        first and last.
      - With any state but V(present), the name of a request means all its instances.
    type: str
    required: true
  state:
    description:
      - V(present) claims, and makes nothing.
      - V(running) claims where O(flavor) is given, makes ready what is not there, and boots it.
      - V(stopped) switches it off and keeps its board and root.
      - V(rebooted) boots it anew.
      - V(rebuilt) gives it a new root, of another O(image) or with another O(ssh_public_key), or because of O(fresh);
        what is in the old one goes.
      - V(extended) sets the end of its lease to O(lease_hours) from now.
      - V(absent) switches it off, removes what was made for it, wipes disks, and frees its boards.
    type: str
    choices: [present, running, stopped, rebooted, rebuilt, extended, absent]
    default: running
  flavor:
    description: The flavor (instance type) with its C(name), and any of C(memory_mb), C(vcpus), C(local_gb),
      C(flavorid), C(cpu_arch), C(cpu_info) and C(extra_specs). Needed to claim.
    type: dict
  image:
    description: Name of an image in the store. Needed to claim.
    type: str
  board:
    description: Id of the one board that is wanted, when it is claimed.
    type: int
  boot_source:
    description:
      - Where its root is to lie. V(nfs) is the proxy node, V(disk) the board's own disk.
      - Counts when the instance is claimed.
    type: str
    choices: [nfs, disk]
    default: nfs
  attempts:
    description: Boards that are tried where hardware is at fault.
    type: int
    default: 2
  wipe_method:
    description: How disks are wiped, as O(hetero.compute.board_wipe#module:method). The default is the proxy's.
    type: str
    choices: [discard, zero, secure_erase]
  wipe_verify:
    description: How that is proven, as O(hetero.compute.board_wipe#module:verify). The default is the proxy's.
    type: str
    choices: [full, sample, none]
  never_ran:
    description: With O(state=absent), an instance that ever ran is refused, and nothing of it is touched.
    type: bool
    default: false
seealso:
  - module: hetero.compute.board_info
"""

EXAMPLES = r"""
- name: A board for jackie, up and proven
  hetero.compute.board_instance:
    instance: jackie
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

- name: Another image
  hetero.compute.board_instance:
    instance: jackie
    image: debian-13
    state: rebuilt

- name: Give it back
  hetero.compute.board_instance:
    instance: jackie
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
    board: {description: Id of its board., type: int}
    name: {description: Name of its board., type: str}
    ip: {description: Address of its board., type: str}
    known_hosts: {description: Its ssh host key as a line for known_hosts., type: str}
    state: {description: State of its board., type: str}
    phases: {description: Seconds of each phase of its boot., type: dict}
    power_proof: {description: What the outlet and the board said of its power., type: dict}
    until: {description: 'The end of its lease in words, with O(state=extended).', type: str}
    changed: {description: Whether anything was changed of it by the last step., type: bool}
    failed: {description: Whether it failed., type: bool}
    blame: {description: 'Whose fault it was: C(proxy), C(network), C(image), C(board) or C(instance).', type: str}
    error: {description: Why., type: str}
    evidence: {description: 'What was seen, of a board that failed.', type: dict}
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
  description: The error in its parts. Where no board is free, C(rejected) and C(rejected_lines) say why.
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

from ..module_utils.boards.instances import in_background, work
from ..module_utils.boards.wipe_disk import METHODS, PROOFS
from ..module_utils.module import run
from ..module_utils.spec import INSTANCE, PROXY_CLAIMS, QUICK, ArgumentSpec

SPEC = (
    PROXY_CLAIMS
    + INSTANCE
    + ArgumentSpec(
        dict(
            board=dict(type="int"),
            boot_source=dict(type="str", choices=["nfs", "disk"], default="nfs"),
            attempts=dict(type="int", default=2),
            wipe_method=dict(type="str", choices=list(METHODS)),
            wipe_verify=dict(type="str", choices=list(PROOFS)),
            never_ran=dict(type="bool", default=False),
        ),
        required_by={"flavor": ("image", "owner", "ssh_public_key")},
    )
)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    if not module.params["background"] or module.check_mode or module.params["state"] in QUICK:
        run(module, work)
    in_background(module)


if __name__ == "__main__":
    main()
