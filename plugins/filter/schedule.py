# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.schedule`: whom to ask for a flavor, in what order, and why nobody else. The rules are
module_utils/_hetero/scheduling/schedule.py's.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: schedule
short_description: Choose nodes for a flavor among boards, GPU hosts and KVM hosts
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Compares a flavor with every node that was asked, and looks at what is free.
  - The rules are those of ArchitectureScheduler, Nova's former scheduler for boards (the same C(cpu_arch), enough of
    C(vcpus), C(memory_mb) and C(local_gb), all of C(cpu_info)), and the flavor's C(extra_specs) with Nova's operators.
  - A flavor that names a hypervisor in its C(extra_specs) is for hosts that run it, one that names none for boards.
  - Where M(hetero.compute.board_info) says what roots are promised, a board whose root has no room is not free.
  - What is free is a hint. Nothing is claimed; the owner of a node decides when it is asked for it.
  - The same nodes give the same answer. Owners come by O(strategy), equal ones in their order in O(_input). Of an
    owner's boards those come first that failed least lately (C(health) in M(hetero.compute.board_info)), equal ones in
    their order in O(_input).
positional: _input, flavor
options:
  _input:
    description:
      - Results of M(hetero.compute.board_info) and M(hetero.compute.host_info), each with its owner as C(item), as a
        task's C(results) of a loop over owners have it.
      - Boards as M(hetero.compute.board_info) returns them will do as well.
    type: list
    elements: dict
    required: true
  flavor:
    description: The flavor (instance type) with its C(name).
    type: dict
    required: true
  name:
    description: The instance that asks, for the answer in words. With it, claims of that name are looked for as well.
    type: str
  count:
    description: How many are wanted. With more than one they are C(NAME-1) to C(NAME-N), on one owner or several.
    type: int
    default: 1
  partial:
    description: Fewer than O(count) will do.
    type: bool
    default: false
  strategy:
    description:
      - V(spread) asks the owner first that has the most room, as Nova's schedulers do, so that no proxy node and no
        host carries more than it must.
      - V(pack) asks the one first that the request fills best, so that others stay whole for larger flavors.
      - Either way, owners that can take all of a request come before those that cannot.
    type: str
    choices: [spread, pack]
    default: spread
  board:
    description: The id of the one board that is wanted.
    type: int
  boot_source:
    description: With V(disk), only boards serve that have a disk of their own.
    type: str
    choices: [nfs, disk]
    default: nfs
  image:
    description:
      - The image that boards are to run, by its name. Those whose proxy node has none of that name, or one of another
        architecture, do not serve.
    type: str
  owner:
    description: Whose request it is; what is theirs and was claimed twice is C(surplus).
    type: str
  refused:
    description: Claims that an owner refused after all, as dicts with C(item), the owner, and the module's C(failure).
    type: list
    elements: dict
    default: []
  proxy:
    description: The one proxy node whose boards will do.
    type: str
  numbers:
    description: Only these of C(NAME-1) to C(NAME-N) are wanted; none for all of them.
    type: list
    elements: int
    default: []
  tolerance:
    description: Share of a flavor's C(memory_mb) that a board may lack, for what its firmware and kernel keep.
    type: float
    default: 0.02
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
  - plugin: hetero.compute.satisfies
    plugin_type: test
"""

EXAMPLES = r"""
- name: Ask the proxy nodes
  hetero.compute.board_info:
  delegate_to: "{{ item }}"
  loop: "{{ groups['proxies'] }}"
  register: proxies

- name: Ask the GPU hosts
  hetero.compute.host_info:
  delegate_to: "{{ item }}"
  loop: "{{ groups['hypervisor_lxc'] }}"
  register: hosts

- name: Say where it would go, or why nowhere
  ansible.builtin.debug:
    msg: "{{ chosen.candidates | map(attribute='name') | join(', ') or chosen.text }}"
  vars:
    chosen: "{{ (proxies.results + hosts.results) | hetero.compute.schedule(flavors['tgx.8x8'], name='bob') }}"
# => bob wants tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB): no node.
#      10 boards: cpu_arch TILEPro64 is not tile-gx64
#       2 GPU hosts: cpu_arch x86_64 is not tile-gx64
"""

RETURN = r"""
_value:
  description: What was found.
  type: dict
  contains:
    candidates:
      description: Nodes that could be had now, the one to ask first first, with C(owner), C(kind), C(name) and C(room),
        which is how many instances it takes.
      type: list
      elements: dict
    rejected:
      description: All other nodes, with C(owner), C(kind), C(name), C(reasons), and C(never), which is true where they
        can never serve this flavor.
      type: list
      elements: dict
    room: {description: How many instances all of them take now., type: int}
    enough: {description: Whether that is enough., type: bool}
    possible: {description: Whether these nodes could serve the request if they were all free., type: bool}
    could:
      description: Name of each node, with how many instances it could take if nobody else had any of it, and no
        operator did anything.
      type: dict
    some: {description: 'Whether O(partial) would get a part of it, where there is no room for all.', type: bool}
    text: {description: 'The answer to somebody who gets none, a line for each reason.', type: str}
    wants: {description: Its first words., type: str}
    waiting: {description: What the nodes are doing that could serve it., type: str}
    taken:
      description: Names of the request that are other owners' (C(name), C(owner), C(item)); then nobody is to be asked.
      type: list
      elements: dict
    parts:
      description: Who has instances of this name already (C(item), C(kind), C(claims), C(boards), C(numbers)).
      type: list
      elements: dict
    surplus:
      description: The same of instances that are there twice and can go.
      type: list
      elements: dict
    visits:
      description: Which owner (C(item)) to ask for which instances (C(numbers) of C(NAME-1) to C(NAME-N)).
      type: list
      elements: dict
"""

schedule = lazy_filter("schedule")


class FilterModule:
    def filters(self):
        return {"schedule": schedule}
