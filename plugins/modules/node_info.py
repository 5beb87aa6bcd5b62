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
  - This is an action plugin. It hands all options but O(node), O(asks) and O(watch) to that module.
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
    description: Further options of that module by name. A play that keeps what it asks in one variable gives it here,
      so that Ansible evaluates one expression for each node.
    type: dict
    default: {}
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
  returned: success
  type: list
  elements: dict
"""
