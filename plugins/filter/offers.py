# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors with what is free of them. module_utils/_hetero/scheduling/nodes.py knows what a node can serve."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: offers
short_description: Say how many instances of each flavor there can be
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks at each flavor as a request does, at all nodes that answered.
  - What is free and a node does not give to who asks does not count as free, where the node was asked for that
    (options O(hetero.compute.node_info#module:owner) and O(hetero.compute.node_info#module:flavors)).
positional: _input, results
options:
  _input:
    description: Flavors by name, as filter P(hetero.compute.flavors#filter) returns them.
    type: dict
    required: true
  results:
    description:
      - Results of a loop over nodes of M(hetero.compute.board_info) or M(hetero.compute.host_info), or a dictionary of
        each node's result.
      - A node that did not answer counts as having none.
    type: raw
    required: true
  table:
    description: Return the lines of a table.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: What could be asked for
  ansible.builtin.debug:
    msg: "{{ none | hetero.compute.flavors | hetero.compute.offers(asked.results) }}"
"""

RETURN = r"""
_value:
  description:
    - A dictionary a flavor, by name, with C(name), C(flavorid), what it C(asks) for, how many instances could be had
      now (C(free)), how many if nobody had any (C(most)), and C(kept), what else is free and is not given, as C(node),
      C(many) and C(why).
    - With O(table), the lines of a table of them.
  type: list
  elements: raw
"""

offers = lazy_filter("offers")


class FilterModule:
    def filters(self):
        return {"offers": offers}
