#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A place in the queue of one node; module_utils/_hetero/instances/kinds/tickets.py knows who keeps it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ticket
short_description: Keep a place in the queue for an instance
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Keeps a place on the node that owns the hardware, for a request that waits. Nothing is claimed by it.
  - All nodes serve those who wait in one order, by O(priority), then O(asked), then the name. What the first one needs
    and is free is held for it. M(hetero.compute.instance) and M(hetero.compute.board_claim) refuse it to others,
    unless their lease is over by the time at which the first one can start, by the leases of those who run.
  - A place is lost when it is not renewed within O(seconds). Until then a request of the same name and owner takes it
    over (O(takes_over)) where it asks for the same flavor and for no more instances.
  - A claim of all that is asked for ends it.
  - No place is kept where the node could never serve any of it.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A place is no change of the node, so it is never reported as one.
options:
  instance:
    description: Name of the instance or of the request.
    type: str
    required: true
  state:
    description: Whether to keep the place or to give it up.
    type: str
    choices: [present, absent]
    default: present
  asked:
    description: When it was asked for, by the controller's clock, in seconds since 1970. Needed with O(state=present).
      A time is refused that is more than a day ahead of this node's clock, or at which no request can have been asked
      for that still waits.
    type: float
  takes_over:
    description:
      - Whether it keeps the time of an earlier place of the same request, which a play has that was started again.
      - The play says V(false) as soon as it has heard the nodes, and O(asked) is then the earliest time that more than
        half of them had. So all nodes have one order, and no node alone decides it.
    type: bool
    default: true
  priority:
    description: The highest goes first, from -1000 to 1000.
    type: int
    default: 0
  seconds:
    description: For how long the place is kept if it is not renewed, by the node's clock.
    type: float
    default: 60
  elsewhere:
    description: What other nodes can give by when, as RV(place.steps) of their answers. By it a node knows when the
      request can start.
    type: list
    elements: list
    default: []
  others:
    description: How many of it other nodes can give at all, as long as no operator does anything; the sum of
      RV(place.possible) and RV(place.there) of their answers. Where that and what this node can give is not enough,
      nothing is held for it. Without it, other nodes are taken to have enough.
    type: int
  kind:
    description: What it runs in, as O(hetero.compute.instance#module:kind).
    type: str
    choices: [board, container, guest]
  owner:
    description: Who asks.
    type: str
    required: true
  flavor:
    description: The flavor, as O(hetero.compute.instance#module:flavor). Needed with O(state=present).
    type: dict
  image:
    description: Name of an image in the node's store, as O(hetero.compute.instance#module:image).
    type: str
  ssh_public_key:
    description: The key that may log in, as O(hetero.compute.instance#module:ssh_public_key). It is checked, and not
      kept. Needed with O(state=present).
    type: str
  board:
    description: Id of the one board that is wanted.
    type: int
  boot_source:
    description: Where a board's root is to lie.
    type: str
    choices: [nfs, disk]
    default: nfs
  devices:
    description: Addresses of the devices that a guest is to get.
    type: list
    elements: str
    default: []
  count:
    description: How many. With more than one the instances are C(NAME-1) to C(NAME-N).
    type: int
    default: 1
  numbers:
    description: Which of C(NAME-1) to C(NAME-N) are wanted, where some are there already. By default all.
    type: list
    elements: int
    default: []
  partial:
    description: Whether fewer will do.
    type: bool
    default: false
  lease_hours:
    description: Hours for which it is wanted. Without it, or with V(0), it has no end.
    type: float
  boards_file:
    description: The table of a proxy node's boards.
    type: path
    default: /tftpboot/tilera_boards
  config:
    description: The node's configuration, as O(hetero.compute.instance#module:config).
    type: path
  state_db:
    description: A proxy node's database.
    type: path
    default: /var/lib/hetero/state.db
seealso:
  - module: hetero.compute.instance
  - module: hetero.compute.board_info
  - module: hetero.compute.host_info
"""

EXAMPLES = r"""
- name: Wait for eight boards
  hetero.compute.ticket:
    instance: lab
    kind: board
    owner: alice
    count: 8
    flavor: {name: tp64.8x8, memory_mb: 16384, vcpus: 10, local_gb: 500, cpu_arch: tilepro64}
    image: debian
    ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
    asked: "{{ now(utc=true).timestamp() }}"
  register: waiting

- name: Wait no longer
  hetero.compute.ticket:
    instance: lab
    kind: board
    owner: alice
    state: absent
"""

RETURN = r"""
place:
  description: The place. Not there with O(state=absent), and where the node could never serve any of it.
  returned: success
  type: dict
  contains:
    asked: {description: 'Since when it waits: the time of an earlier request whose place it took over.', type: float}
    ahead:
      description: Those who want some of the same and go first, as C(request) and C(owner).
      type: list
      elements: dict
    may: {description: How many instances a claim would get at this moment., type: int}
    held: {description: For how many instances enough is free and held for it., type: int}
    there: {description: How many of its instances the node has., type: int}
    steps:
      description: Lists of seconds since 1970, and how many instances it can have here by then.
      type: list
      elements: list
    possible:
      description: How many instances it can have here at all, as long as no operator does anything.
      type: int
    stuck:
      description: What it could have if an operator made it free, the first ones, as C(name) and C(why).
      type: list
      elements: dict
    ends:
      description: Whose leases it waits for, the first ones, as C(name), C(owner) and C(when).
      type: list
      elements: dict
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.instances.kinds.tickets import work
from ..module_utils._hetero.site.kinds import KINDS

SPEC = PROXY + ArgumentSpec(
    dict(
        instance=dict(type="str", required=True),
        state=dict(type="str", choices=["present", "absent"], default="present"),
        asked=dict(type="float"),
        takes_over=dict(type="bool", default=True),
        priority=dict(type="int", default=0),
        seconds=dict(type="float", default=60),
        elsewhere=dict(type="list", elements="list", default=[]),
        others=dict(type="int"),
        kind=dict(type="str", choices=list(KINDS)),
        config=dict(type="path"),
        owner=dict(type="str", required=True),
        flavor=dict(type="dict"),
        image=dict(type="str"),
        ssh_public_key=dict(type="str", no_log=False),
        board=dict(type="int"),
        boot_source=dict(type="str", choices=["nfs", "disk"], default="nfs"),
        devices=dict(type="list", elements="str", default=[]),
        count=dict(type="int", default=1),
        numbers=dict(type="list", elements="int", default=[]),
        partial=dict(type="bool", default=False),
        lease_hours=dict(type="float"),
    ),
    required_if=[("state", "present", ("asked", "flavor", "ssh_public_key"))],
)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
