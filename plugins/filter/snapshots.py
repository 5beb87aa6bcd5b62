# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.snapshots`: what several proxy nodes answered to board_info, by node, in one format for all.

Playbook status prints it as JSON, writes it for the inventory plugin, and makes its page of it.
"""

from __future__ import annotations

import time

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: snapshots
short_description: Put together what several proxy nodes know
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns the results of a loop of M(hetero.compute.board_info) over proxy nodes into a dictionary by node.
  - What belongs to one node is what the inventory plugin P(hetero.compute.nodes#inventory) reads from a snapshot.
  - A node that could not be asked has no boards, and says why.
positional: _input
options:
  _input:
    description: C(results) of the loop, whose items are names of nodes.
    type: list
    elements: dict
    required: true
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
    By node, C(taken_at) (seconds since 1970), C(boards) and C(claims) as M(hetero.compute.board_info) returns them, and
    C(error), which is none where the node answered.
  type: dict
"""


def snapshots(results):
    if isinstance(results, (str, dict)) or not all(isinstance(result, dict) and "item" in result for result in results):
        raise AnsibleFilterError("hetero.compute.snapshots needs the results of a loop over nodes before the bar")
    taken_at = round(time.time(), 3)
    found = {}
    for result in results:
        answered = "boards" in result
        found[result["item"]] = {
            "taken_at": taken_at,
            "boards": result["boards"] if answered else [],
            "claims": result["claims"] if answered else [],
            "error": None if answered else result.get("msg") or "did not answer",
        }
    return found


class FilterModule:
    def filters(self):
        return {"snapshots": snapshots}
