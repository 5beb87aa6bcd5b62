# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.site_nodes`: the nodes of an inventory that have boards, containers or guests."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: site_nodes
short_description: List the nodes of an inventory by what they have
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Proxy nodes are in group C(proxies), compute hosts in C(hypervisor_lxc) and C(hypervisor_kvm).
  - Each list is in the inventory's order.
positional: _input, without
options:
  _input:
    description: The inventory's C(groups).
    type: dict
    required: true
  without:
    description: Names of nodes to leave out, with commas between them.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: All nodes but one that is down
  ansible.builtin.debug:
    msg: "{{ (groups | hetero.compute.site_nodes('proxy2')).nodes }}"
"""

RETURN = r"""
_value:
  description:
    - C(of) has the nodes by kind of instance (C(board), C(container), C(guest)), C(hosts) all compute hosts, C(nodes)
      all of them.
    - C(alone) has the only place where instances can be, as node (C(item)) and C(kind); it is empty if there are
      several places, or if nodes are left out.
    - C(without) has the names that are left out, C(unknown) those of them that the inventory does not have.
  type: dict
"""

site_nodes = lazy_filter("site_nodes")


class FilterModule:
    def filters(self):
        return {"site_nodes": site_nodes}
