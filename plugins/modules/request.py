#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it does all of the work, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: request
short_description: Decide the next step of a request from the nodes' answers
version_added: 0.1.0
description:
  - The collection's playbooks ask all nodes side by side (M(hetero.compute.node_info)), decide by this, and act on the
    chosen nodes side by side (M(hetero.compute.instance)). Each step returns the plan that the next one goes by.
  - This is an action plugin. It touches no host. It reads the nodes' answers from their variables C(_asked) and
    C(_done).
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
  step:
    description:
      - V(find) says which nodes have an instance. It fails if the instance belongs to another owner, or if a node could
        not be asked.
      - V(choose) says which nodes to ask for what.
      - V(claimed) says what they gave.
      - V(waited) says, of a request that waits, whether to look and claim now, by the places that nodes keep for it
        (M(hetero.compute.ticket), registered as C(_place)).
      - V(settle) says whose a name is, as another play may have claimed it on another node meanwhile. All nodes are
        asked again before it. Of a plan of which nobody has said yet what the nodes gave, it says that first, as
        V(claimed) does; a request that is not all there is not settled.
      - V(target) says to which compute host an instance moves, and V(moved) where it is from then on.
    type: str
    choices: [find, choose, claimed, waited, settle, target, moved]
    required: true
  asks:
    description: Further options by name. Ansible compiles each expression of a task anew, so that a play which keeps
      them in one variable is done sooner.
    type: dict
    default: {}
  request:
    description: What is asked for. O(step=find) takes only its instance and owner.
    type: dict
    required: true
    suboptions:
      instance: {description: Name of the instance or of the request., type: str, required: true}
      owner: {description: Who asks., type: str, required: true}
      flavor: {description: 'The flavor, with its name.', type: dict, default: {}}
      count: {description: 'How many instances, NAME-1 to NAME-N if more than one.', type: int, default: 1}
      numbers:
        description: Only these of NAME-1 to NAME-N; none for all. O(step=find) takes it, too.
        type: list
        elements: int
        default: []
      partial: {description: Whether fewer instances will do., type: bool, default: false}
      placement: {description: V(spread) or V(pack)., type: str, default: spread}
      board: {description: 'Id of the only board that will do, or empty.', type: str, default: ''}
      proxy: {description: 'The only proxy node whose boards will do, or empty.', type: str, default: ''}
      boot_source: {description: V(nfs) or V(disk)., type: str, default: nfs}
      image: {description: 'The image for boards, or empty.', type: str, default: ''}
  nodes:
    description: All nodes that may have it. Each has been asked.
    type: list
    elements: str
    required: true
  without:
    description: Nodes that were not asked because they are down.
    type: list
    elements: str
    default: []
  plan:
    description: The plan of the step before.
    type: dict
    default: {}
  force:
    description: With O(step=find), also if it belongs to another owner.
    type: bool
    default: false
  to:
    description: With O(step=find), the verb, if there has to be an instance for it.
    type: str
  wait:
    description: With O(step=claimed) and O(step=waited), how long to wait for a node to become free (minutes).
    type: float
    default: 0
  interval:
    description: With O(step=claimed) and O(step=waited), the seconds between two questions to the nodes.
    type: float
    default: 10
seealso:
  - plugin: hetero.compute.schedule
    plugin_type: filter
  - plugin: hetero.compute.holders
    plugin_type: filter
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Ask the nodes
  hetero.compute.node_info:
    node: proxy
    instance: jackie
  loop: "{{ [inventory_hostname] }}"
  register: _asked

- name: Find which of them has jackie
  hetero.compute.request:
    step: find
    request: {instance: jackie, owner: jo}
    nodes: "{{ groups['proxies'] }}"
  run_once: true
  register: found
"""

RETURN = r"""
parts:
  description: Which node has what of it (C(item), C(kind), C(numbers), C(claims), C(boards)).
  returned: with O(step=find) and O(step=claimed)
  type: list
  elements: dict
visits:
  description: Which node to ask for what (C(item), C(kind), C(numbers)).
  returned: with O(step=choose) and O(step=settle)
  type: list
  elements: dict
surplus:
  description: Parts that are to be given back.
  returned: with O(step=claimed) and O(step=settle)
  type: list
  elements: dict
placed:
  description: Whether all of the request is claimed.
  returned: with O(step=claimed) and O(step=settle)
  type: bool
again:
  description: Whether others were just quicker, so that a second look is worth it.
  returned: with O(step=claimed)
  type: bool
waits:
  description: Whether the request waits.
  returned: with O(step=claimed) and O(step=waited)
  type: bool
go:
  description: Whether to look and claim now. Otherwise the places are renewed after C(pause) seconds.
  returned: with O(step=waited)
  type: bool
queue:
  description: At which nodes to keep a place (C(item), C(kind), C(numbers), C(elsewhere)).
  returned: with O(step=claimed) and O(step=waited), if it waits
  type: list
  elements: dict
taken:
  description: Which other owner has a name of the request, in words; empty if none has.
  returned: with O(step=settle)
  type: str
text:
  description: Why not all of it is claimed, in words.
  returned: with O(step=claimed)
  type: str
ending:
  description: In one word for programs, how the request would end if the play ended here, as
    P(hetero.compute.outcome#callback) says it.
  returned: with O(step=claimed), and on failure
  type: str
"""
