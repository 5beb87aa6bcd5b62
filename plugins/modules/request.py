#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it does all of the work, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: request
short_description: Decide the next step of a request from what the nodes said
version_added: 0.1.0
description:
  - The collection's playbooks ask all nodes side by side (M(hetero.compute.node_info)), decide by this, and act on the
    chosen nodes side by side (M(hetero.compute.instance)). Each step returns the plan that the next one goes by.
  - This is an action plugin. It touches no host; what nodes said it takes from their variables, C(_asked) and C(_done).
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
      - V(find) says who has an instance; fails where it is another owner's, or where a node could not be asked.
      - V(choose) says whom to ask for what.
      - V(claimed) says what came of that.
      - V(settle) says whose a name is, where another play may have claimed it on another node meanwhile.
    type: str
    choices: [find, choose, claimed, settle]
    required: true
  request:
    description:
      - What is asked for, with C(instance) and C(owner); for all but O(step=find) also C(flavor), C(count), C(partial),
        C(placement), C(board), C(boot_source) and C(image).
    type: dict
    required: true
  nodes:
    description: All nodes that may have it.
    type: list
    elements: str
    required: true
  without:
    description: Nodes that were left out, for they are down.
    type: list
    elements: str
    default: []
  plan:
    description: The plan of the step before.
    type: dict
    default: {}
  alone:
    description: The only node there is (C(item), C(kind), C(numbers)), which is asked without a look before.
    type: dict
  force:
    description: With O(step=find), also what is another owner's.
    type: bool
    default: false
  to:
    description: With O(step=find), the verb; there must be something to do it to.
    type: str
  wait:
    description: How long to wait for a node to become free (minutes).
    type: float
    default: 0
  interval:
    description: Seconds between two looks.
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
- name: Who has jackie
  hetero.compute.request:
    step: find
    request: {instance: jackie, owner: jo}
    nodes: "{{ groups['proxies'] }}"
  register: found
"""

RETURN = r"""
parts:
  description: Who has what of it (C(item), C(kind), C(numbers), C(claims), C(boards)).
  returned: with O(step=find) and O(step=claimed)
  type: list
  elements: dict
visits:
  description: Whom to ask for what (C(item), C(kind), C(numbers)).
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
  returned: with O(step=claimed)
  type: bool
again:
  description: Whether a second look is worth it, for others were quicker.
  returned: with O(step=claimed)
  type: bool
waits:
  description: Whether to look again after C(pause) seconds.
  returned: with O(step=claimed)
  type: bool
taken:
  description: Whose a name of the request is, where it is another owner's.
  returned: with O(step=settle)
  type: str
text:
  description: Why not all of it is claimed.
  returned: with O(step=claimed)
  type: str
"""
