#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it calls the node's own module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Ask proxy nodes and compute hosts what they have, by one task
version_added: 0.1.0
description:
  - Runs M(hetero.compute.board_info) on a proxy node and M(hetero.compute.host_info) on a compute host, so that a play
    asks all of them side by side.
  - This is an action plugin. It hands all options but those of its own to that module.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  node:
    description: What the node is, V(proxy) or V(host). Without it, a node of the inventory's group C(proxies) is a
      proxy node, and any other a compute host.
    type: str
    choices: [proxy, host]
  asks:
    description: Further options of that module by name.
    type: dict
    default: {}
  asks_in:
    description: Name of a variable with what O(asks) is. A play that asks many nodes gives it, because Ansible compiles
      an expression anew for each of them.
    type: str
  limit_in:
    description: Name of a variable with the seconds in which the node answers, for the same reason; 120 where it has no
      value, and no limit at 0. A node that did not counts as one that Ansible's C(timeout) ended. Without this option
      there is no limit.
    type: str
  instance:
    description: Only what belongs to this instance, or to the request of this name.
    type: str
  events:
    description: How many of the newest events to return of each board or instance.
    type: int
    default: 0
  watch:
    description:
      - Print each phase of the instances as it comes, until each of them runs, or is left in another state; or until
        nothing has happened for so many seconds. Of what happened before, their newest O(events) are looked at.
      - Without it, the node is asked once, and nothing is printed.
    type: float
  packed:
    description: Whether the answer comes as one text. Ansible goes through each value of a result some ten times, and
      through a text at once. For plays that ask many nodes. The collection's filters and its step
      M(hetero.compute.request) read such answers.
    type: bool
    default: false
  owner:
    description: For whom RV(hetero.compute.board_info#module:offers) is.
    type: str
    default: ''
  flavors:
    description: Flavors by name, as filter P(hetero.compute.flavors#filter) returns them, of each of which
      RV(hetero.compute.board_info#module:offers) says how many instances O(owner) could have now.
    type: dict
    default: {}
seealso:
  - module: hetero.compute.board_info
  - module: hetero.compute.host_info
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Ask every node side by side
  hetero.compute.node_info:
    node: "{{ 'proxy' if inventory_hostname in groups['proxies'] else 'host' }}"
  register: asked
"""

RETURN = r"""
watched:
  description: How the instances stand in the end, as C(instance), C(node), C(state) and C(note). One in state C(gone)
    was given back.
  returned: with O(watch)
  type: list
  elements: dict
claims:
  description: The claims there. All else is in the documentation of the two modules.
  returned: success, without O(packed)
  type: list
  elements: dict
packed:
  description: All that the node has, as one text of JSON.
  returned: success, with O(packed)
  type: str
"""
