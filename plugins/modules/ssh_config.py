#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it does all of the work, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_config
short_description: Keep on the controller how to reach instances
version_added: 0.1.0
description:
  - Writes a file for C(ssh -F) for each instance, with its address and the host key that was put into its root.
  - This is an action plugin. It touches no host.
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
  folder:
    description: Folder on the controller. It is made if it is not there.
    type: path
    required: true
  instances:
    description:
      - Instances as M(hetero.compute.tilera_boot) returns them. C(instance), C(ip) and C(known_hosts) are used.
      - One whose C(ip) is no address or host name, or whose C(known_hosts) is no line of such a file, is refused.
      - With O(state=absent), C(instance) is enough.
    type: list
    elements: dict
    required: true
  options:
    description: Further lines for each instance, like C(ProxyJump proxy1).
    type: list
    elements: str
    default: []
  state:
    description: Whether the files are to be there.
    type: str
    choices: [present, absent]
    default: present
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Keep the way in
  hetero.compute.ssh_config:
    folder: ~/.ssh/hetero
    instances: "{{ boot.boards }}"
    options: [ProxyJump proxy1]

- name: Forget it
  hetero.compute.ssh_config:
    folder: ~/.ssh/hetero
    instances: [{instance: jackie}]
    state: absent
"""

RETURN = r""" # """
