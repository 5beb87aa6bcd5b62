#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it does all of the work, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hand_over
short_description: See that each node did its part, and say how its instances are reached
version_added: 0.1.0
description:
  - The collection's playbooks have nodes act side by side (M(hetero.compute.instance)), and end with this.
  - It fails if a node did not do its part. Otherwise it keeps a file for C(ssh -F) of each instance, as
    M(hetero.compute.ssh_config) does, and prints how each is reached and until when it is lent.
  - This is an action plugin. It touches no host. It reads the nodes' results from their variable C(_done).
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  plan:
    description: The plan of the last step (M(hetero.compute.request)), whose C(parts) say which nodes had a part.
    type: dict
    required: true
  says:
    description:
      - V(ways) keeps the files, and says how each instance is reached and until when it is lent.
      - V(leases) says only until when they are lent.
      - V(nothing) only fails if a node did not do its part, as check mode does in any case.
    type: str
    choices: [ways, leases, nothing]
    default: ways
  folder:
    description: Folder of the files on the controller. Without it, none are kept.
    type: path
    default: ''
  options:
    description: Further lines for each file, like C(ProxyJump proxy1).
    type: list
    elements: str
    default: []
  stats:
    description: Whether to give the instances to the play's statistics, as C(hetero_instances). AWX keeps them as the
      job's artifacts.
    type: bool
    default: false
seealso:
  - module: hetero.compute.request
  - module: hetero.compute.ssh_config
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Keep the way in, and say how it stands
  hetero.compute.hand_over:
    plan: "{{ found }}"
    folder: ~/.ssh/hetero
"""

RETURN = r"""
undone:
  description: The nodes that did not do their part.
  returned: on failure
  type: list
  elements: str
"""
