# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.holders`: which owners have an instance, or the parts of one. See
module_utils/_hetero/site/owners.py.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: holders
short_description: Say which proxy nodes and hosts have an instance
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Puts together what owners answered about a name. C(NAME-1) to C(NAME-N) of a request may be on several of them.
  - If two owners have an instance of the same name, the older claim counts; of equally old ones the claim of the owner
    whose name comes first.
positional: _input, name
options:
  _input:
    description: Results of M(hetero.compute.board_info) and M(hetero.compute.host_info), each with C(item), its owner.
    type: list
    elements: dict
    required: true
  name:
    description: Name of the instance or request.
    type: str
    required: true
  count:
    description: Only instance C(NAME), or with more than one C(NAME-1) to C(NAME-N). Without it, all of a request.
    type: int
  owner:
    description: Who asks.
    type: str
  keep:
    description: Names of instances that were there before; without it all may stay.
    type: list
    elements: str
seealso:
  - plugin: hetero.compute.schedule
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Who has jackie
  hetero.compute.board_info:
    instance: jackie
  delegate_to: "{{ item }}"
  loop: "{{ groups['proxies'] }}"
  register: asked

- name: Show it
  ansible.builtin.debug:
    msg: "{{ (asked.results | hetero.compute.holders('jackie')).parts | map(attribute='item') }}"
"""

RETURN = r"""
_value:
  description: What was found.
  type: dict
  contains:
    parts:
      description: What each owner has (C(item), C(kind), C(claims), C(boards), C(numbers)), the oldest claim first.
      type: list
      elements: dict
    taken:
      description: Whose the names are, where another owner than O(owner) had one before them; empty where nobody has.
      type: str
    unclaimed:
      description:
        - What is there of instances of the name that no owner has a claim of, with what to do; a node's database
          may be older than that.
      type: list
      elements: str
    notes:
      description: Files there that say nothing, beside which nothing of an instance is there, with what to do.
      type: list
      elements: str
    twice:
      description: Instances that several nodes have made, of O(owner) where that is given, with what to do.
      type: list
      elements: str
    surplus:
      description: The same of claims of O(owner) that are one too many and were not made ready.
      type: list
      elements: dict
"""

holders = lazy_filter("holders")


class FilterModule:
    def filters(self):
        return {"holders": holders}
