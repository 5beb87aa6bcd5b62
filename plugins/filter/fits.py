# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.fits`: which instance types a board can serve. The rules are
module_utils/_hetero/scheduling/fit.py's.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: fits
short_description: Name the instance types that a board can serve
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Compares each instance type with what the board is, by the same rules as M(hetero.compute.board_claim).
  - It does not look whether the board is free.
positional: _input, board
options:
  _input:
    description: The instance types by name, such as C(hetero_instance_types).
    type: dict
    required: true
  board:
    description: A board as M(hetero.compute.board_info) returns it.
    type: dict
    required: true
  tolerance:
    description: Share of an instance type's C(memory_mb) that a board may lack, for what its firmware and kernel keep.
    type: float
    default: 0.02
seealso:
  - plugin: hetero.compute.nodes
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Show what each board is good for
  ansible.builtin.debug:
    msg: "board{{ item.id }} fits {{ hetero_instance_types | hetero.compute.fits(item) | join(', ') }}"
  loop: "{{ info.boards }}"
# => board0 fits tp64.8x8
"""

RETURN = r"""
_value:
  description: Names of the instance types that fit, in their own order.
  type: list
  elements: str
"""

fits = lazy_filter("fits")


class FilterModule:
    def filters(self):
        return {"fits": fits}
