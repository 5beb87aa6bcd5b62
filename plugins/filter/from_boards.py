# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file for templates; its format is known to module_utils/_hetero/site/boards_file.py alone."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: from_boards
short_description: Read the text of a boards file
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns the text of a boards file (C(tilera_boards)) into a list of boards.
positional: _input
options:
  _input:
    description: Text of the boards file.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Addresses of all boards
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'tilera_boards') | hetero.compute.from_boards | map(attribute='ip') }}"
"""

RETURN = r"""
_value:
  description: A dictionary a board, with the file's columns, C(name), C(arch) and C(geometry).
  type: list
  elements: dict
"""

from_boards = lazy_filter("from_boards")


class FilterModule:
    def filters(self):
        return {"from_boards": from_boards}
