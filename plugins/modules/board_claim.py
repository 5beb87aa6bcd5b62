#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claim boards for an instance by flavor, or give them back. The rules are in
module_utils/_hetero/boards/work/board_claims.py and board_releases.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_claim
short_description: Claim boards of a proxy node for an instance, or give them back
version_added: 0.1.0
description:
  - Picks boards that serve a flavor, in the order of their ids, and gives them to an instance of an owner.
  - A claim is one transaction on the proxy node. Of any number of racing claims for a board one wins; the others get
    the next free board, or are told for each board why it was refused.
  - The same request again finds its claim and changes nothing. Another owner's name is refused; so is the same name
    with another flavor, image or key.
  - No power is switched and nothing is written to a board; the modules that follow do that.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.created
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details:
      - With O(state=absent) it reports what still prevents giving the board back, but does not fail, because the tasks
        that stop and clean the board did nothing in check mode either.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  instance:
    description:
      - Name of the instance; it becomes the board's host name. 1 to 63 of a-z, 0-9 and C(-), with a letter or digit
        first and last.
      - With O(state=absent) it is the name of a request (all its boards) or of one instance. Without it O(board) is
        given back, which must be in error and claimed by nobody any more.
      - Needed for O(state=present).
    type: str
  owner:
    description:
      - Who asks, in at most 255 characters that can be seen. Needed for O(state=present).
      - If it is given with O(state=absent), another owner's claim is not ended.
    type: str
  flavor:
    description: The flavor (instance type) with its C(name), and any of C(memory_mb), C(vcpus), C(local_gb),
      C(flavorid), C(cpu_arch), C(cpu_info) and C(extra_specs). Needed for O(state=present).
    type: dict
  image:
    description:
      - The image that the instance is to run, by its name in the store. Needed for O(state=present).
      - Boards of another architecture than that of an image in the store do not fit. Nor do boards for which it has no
        kernel, and boards whose firmware passes no arguments, where the image has some (C(cmdline)).
    type: str
  ssh_public_key:
    description: The owner's OpenSSH public key. Two keys are the same when type and body are; the comment does not
      matter. Needed for O(state=present).
    type: str
  board:
    description:
      - Id of the one board that is wanted.
      - With O(state=absent), only this board of the request is given back.
    type: int
  count:
    description: How many boards. With more than one the instances are C(NAME-1) to C(NAME-N).
    type: int
    default: 1
  numbers:
    description:
      - Which of C(NAME-1) to C(NAME-N) this node is asked for, if others have the rest. All of them by default.
      - With O(state=absent), only these of the request are given back.
    type: list
    elements: int
    default: []
  partial:
    description: Take fewer boards than O(count) if there are not enough. Otherwise it is all or nothing.
    type: bool
    default: false
  lease_hours:
    description: Hours until the claim expires. Without it, or with V(0), the claim stays until it is ended. A claim
      that exists keeps its time; where that is another one, a line says so.
    type: float
  move:
    description: If the instance's board is in state C(error), give it the next free board. The board in error keeps its
      state and loses the claim. Of a request that has some of its instances, no others are claimed then.
    type: bool
    default: false
  boot_source:
    description:
      - Where the root of the instance is to lie. V(nfs) is the proxy node. V(disk) is the board's own disk, for which
        only boards fit whose wiring names one.
    type: str
    choices: [nfs, disk]
    default: nfs
  memory_tolerance:
    description: The share of the flavor's C(memory_mb) that firmware and kernel may keep.
    type: float
    default: 0.02
  timeout:
    description: Seconds to wait for another verb that works on a board which is to be given back.
    type: float
    default: 30
  state:
    description:
      - V(present) claims.
      - V(absent) gives back. The board must have been off at the last look at its outlet, and have no export, root or
        boot file any more.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: hetero.compute.board_info
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: A board for jackie
  hetero.compute.board_claim:
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
  register: claim

- name: Eight boards for a day, all or none
  hetero.compute.board_claim:
    instance: lab
    owner: alice
    flavor: "{{ flavors['tp64.8x8'] }}"
    image: debian
    ssh_public_key: "{{ key }}"
    count: 8
    lease_hours: 24

- name: Give jackie's board back
  hetero.compute.board_claim:
    instance: jackie
    state: absent
"""

RETURN = r"""
boards:
  description: The boards of the request, in the order of their instances. With O(state=absent) those that were given
    back.
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: Name of the instance., type: str}
    request: {description: The name that was asked for (O(instance))., type: str}
    board: {description: Id of the board., type: int}
    name: {description: Name of the board., type: str}
    ip: {description: Address of the board., type: str}
    mac: {description: MAC address of the board., type: str}
    owner: {description: Who asked., type: str}
    flavor: {description: Name of the flavor., type: str}
    image: {description: The image asked for., type: str}
    created: {description: When it was claimed (seconds since 1970)., type: float}
    expires: {description: 'When it expires, or none.', type: float}
    host_key: {description: "The ssh host key put into the board's root, once there is one.", type: str}
    image_hash: {description: 'Hash of the image, once it is in place.', type: str}
    boot_source: {description: 'Where the root lies, once it is in place.', type: str}
    state: {description: State of the board., type: str}
    ran: {description: Whether the instance ever ran there; not of one that was given back., type: bool}
  sample:
    - instance: jackie
      request: jackie
      board: 0
      name: board0
      ip: 10.0.2.1
      mac: 00:1a:ca:00:57:90
      owner: alice
      flavor: tp64.8x8
      image: debian
      created: 1760000000.0
      expires: null
      host_key: null
      image_hash: null
      boot_source: null
      state: power off
rejected:
  description: Name of each board that does not serve or is not free, and why.
  returned: always
  type: dict
  sample: {board1: [running bob since 2 min]}
rejected_lines:
  description: The same for people, equal reasons together.
  returned: always
  type: list
  elements: str
  sample: ["10 boards: cpu_arch TILEPro64 is not tile-gx64"]
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: '', phase: '', text: "wants tp64.8x8: 10 of 10 boards fit, board0 chosen", seconds: null}
errors:
  description: With O(state=absent), each instance that could not be ended, and why.
  returned: O(state=absent)
  type: dict
  sample: {jackie: "jackie: board0 is not clean: its outlet was last seen on"}
failure:
  description: The error in its parts. Where no board is free, C(rejected) and C(rejected_lines) say why.
  returned: failure
  type: dict
  sample: {what: belongs to alice, thing: jackie, remedy: choose another name}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {claim: 0.004}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.board_claims import present
from ..module_utils._hetero.boards.work.board_fit import ClaimRequest
from ..module_utils._hetero.boards.work.board_releases import absent, make_free
from ..module_utils._hetero.boards.work.each_board import Instances
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run

SPEC = PROXY_CLAIMS + ArgumentSpec(
    {
        "instance": {"type": "str"},
        "owner": {"type": "str"},
        "flavor": {"type": "dict"},
        "image": {"type": "str"},
        "ssh_public_key": {"type": "str", "no_log": False},
        "board": {"type": "int"},
        "count": {"type": "int", "default": 1},
        "numbers": {"type": "list", "elements": "int", "default": []},
        "partial": {"type": "bool", "default": False},
        "lease_hours": {"type": "float"},
        "move": {"type": "bool", "default": False},
        "boot_source": {"type": "str", "choices": ["nfs", "disk"], "default": "nfs"},
        "memory_tolerance": {"type": "float", "default": 0.02},
        "timeout": {"type": "float", "default": 30},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    },
    required_if=[("state", "present", ("instance", "owner", "flavor", "image", "ssh_public_key"))],
    required_one_of=[("instance", "board")],
)


def work(params, check):
    change = Change(check)
    actor = f"{params['owner'] or 'board_claim'} pid {os.getpid()}"
    # In check mode a missing database is not made: nothing is claimed yet, and every board is free.
    with Proxy(params, actor, create=not check) as proxy, change.step("claim"):
        if params["state"] == "present":
            result = present(proxy, request(params), change)
        elif params["instance"] is None:
            result = make_free(proxy, proxy.board(params["board"]), change, Deadline(params["timeout"]))
        else:
            instances = Instances(*(params[name] for name in ("instance", "owner", "numbers", "created")))
            result = absent(proxy, instances, change, Deadline(params["timeout"]), params["board"])
    return dict(result, **change.result)


def request(params):
    given = {name: value for name, value in params.items() if name in ClaimRequest.__dataclass_fields__}
    given["numbers"] = tuple(given["numbers"])
    return ClaimRequest(params["instance"], tolerance=params["memory_tolerance"], **given)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
