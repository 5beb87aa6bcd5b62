# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.slurm_slots`: Slurm's nodes and partitions for flavors, as many as the owners could have."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: slurm_slots
short_description: Make Slurm's nodes and partitions of flavors
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Each flavor has as many slots as the owners could have instances of it if nobody had any. Slots are nodes to Slurm,
    called C(NAME-1) to C(NAME-N), as the instances of a request are.
  - Slots are called as their flavor is, up to its dot (C(tp64) of C(tp64.8x8)), or by all of its name where two
    flavors begin so.
  - A slot has the flavor's vcpus and memory, features by which jobs ask for it (the flavor, its architecture, its
    geometry), and its GPUs and PCI devices as generic resources.
  - Fails with everything that is wrong with O(partitions) and O(slots), and where an owner was not asked, because its
    slots would be taken from running jobs.
positional: _input, results, partitions, slots
options:
  _input:
    description: The flavors by name, as filter P(hetero.compute.flavors#filter) returns them.
    type: dict
    required: true
  results:
    description: Results of M(hetero.compute.board_info) and M(hetero.compute.host_info), each with its owner as
      C(item), or a dictionary of each owner's result.
    type: raw
    required: true
  partitions:
    description:
      - Partitions by name, as C(slurm_partitions) of role P(hetero.compute.slurm#role). Without them, one partition has
        all flavors of which there is any node.
    type: dict
  slots:
    description: More on the slots of a flavor, as C(slurm_slots) of that role.
    type: dict
    default: {}
seealso:
  - plugin: hetero.compute.offers
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Ask the proxy nodes
  hetero.compute.board_info:
  delegate_to: "{{ item }}"
  loop: "{{ groups['proxies'] }}"
  register: proxies

- name: Show the lines of slurm.conf
  ansible.builtin.debug:
    msg: "{{ made.nodes + made.partitions }}"
  vars:
    made: "{{ none | hetero.compute.flavors | hetero.compute.slurm_slots(proxies.results, partitions) }}"
    partitions: {boards: {flavors: [tp64.8x8]}}
# => NodeName=tp64-[1-10] CPUs=1 RealMemory=16384 State=CLOUD Feature=tp64.8x8,tilepro64,8x8
#    PartitionName=boards Nodes=tp64-[1-10] OverSubscribe=EXCLUSIVE State=UP Default=NO
"""

RETURN = r"""
_value:
  description: The slots.
  type: dict
  contains:
    pools:
      description: The slots of each flavor (C(name), C(flavor), C(count), C(image), C(new_root), C(slurmd)).
      type: list
      elements: dict
    nodes: {description: Lines of slurm.conf with nodes., type: list, elements: str}
    partitions: {description: Lines of slurm.conf with partitions., type: list, elements: str}
    gres: {description: Lines of gres.conf., type: list, elements: str}
    gres_types: {description: Names of the generic resources., type: list, elements: str}
    new_root: {description: Partitions whose jobs find a new root each., type: list, elements: str}
"""

slurm_slots = lazy_filter("slurm_slots")


class FilterModule:
    def filters(self):
        return {"slurm_slots": slurm_slots}
