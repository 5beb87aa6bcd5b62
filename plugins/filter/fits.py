# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.fits`: which instance types a board can serve. The rules are module_utils/flavors/fit.py's."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ..module_utils.errors import BadInput
from ..module_utils.flavors.checking import validate
from ..module_utils.flavors.fit import TOLERANCE, rejections

DOCUMENTATION = r"""
name: fits
short_description: Name the instance types that a board can serve
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Compares each instance type with what the board is, by the same rules as M(hetero.compute.board_claim).
  - Whether the board is free just now is not looked at.
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


def fits(instance_types, board, tolerance=TOLERANCE):
    if not isinstance(instance_types, dict):
        raise AnsibleFilterError("hetero.compute.fits needs a mapping of instance types by name before the bar")
    if not isinstance(board, dict):
        raise AnsibleFilterError("hetero.compute.fits needs a board (a mapping, as board_info returns it)")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < 1:
        raise AnsibleFilterError(f"hetero.compute.fits: tolerance is {tolerance!r}: give a number from 0 to below 1")
    names = []
    for name, flavor in instance_types.items():
        try:
            validate(dict(flavor, name=name) if isinstance(flavor, dict) else flavor)
        except BadInput as error:
            raise AnsibleFilterError(f"hetero.compute.fits: {error}") from error
        if not rejections(flavor, board, tolerance):
            names.append(name)
    return names


class FilterModule:
    def filters(self):
        return {"fits": fits}
