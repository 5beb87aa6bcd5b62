# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.snapshots`: what several owners answered to board_info or host_info, by node, in one format.

Playbook status prints it as JSON, writes it for the inventory plugin, and makes its page of it.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: snapshots
short_description: Put together what several proxy nodes or GPU hosts know
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns the results of a loop of M(hetero.compute.board_info) over proxy nodes, or of M(hetero.compute.host_info) over
    GPU hosts, into a dictionary by node.
  - What belongs to one node is what the inventory plugin P(hetero.compute.nodes#inventory) reads from a snapshot.
  - A node that could not be asked has no boards or GPUs, and says why.
positional: _input, hosts, as_text
options:
  _input:
    description: C(results) of the loop, whose items are names of nodes; or a dictionary of each node's result.
    type: raw
    required: true
  hosts:
    description: Whether the nodes are GPU hosts.
    type: bool
    default: false
  as_text:
    description: Whether each node's is C(error) and one text of JSON, C(packed), as filters
      P(hetero.compute.status_table#filter) and P(hetero.compute.status_page#filter) take it, too. Ansible goes through
      each value of a variable whenever that is read, which takes seconds for a thousand boards.
    type: bool
    default: false
seealso:
  - plugin: hetero.compute.status_page
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Ask the owners
  hetero.compute.board_info:
  delegate_to: "{{ item }}"
  loop: "{{ groups['proxies'] }}"
  register: _info

- name: Show all they know
  ansible.builtin.debug:
    var: _info.results | hetero.compute.snapshots
"""

RETURN = r"""
_value:
  description: >-
    By node, C(taken_at) (seconds since 1970), C(error), which is none where the node answered, and, as
    M(hetero.compute.board_info) returns them, C(boards), C(claims) and C(roots); or, as M(hetero.compute.host_info)
    does, C(gpus), C(instances), C(claims), C(capacity), C(hypervisor), C(cpu_arch) and C(unsupported).
  type: dict
"""

snapshots = lazy_filter("snapshots")


class FilterModule:
    def filters(self):
        return {"snapshots": snapshots}
