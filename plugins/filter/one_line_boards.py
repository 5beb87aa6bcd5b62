# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file as Nova's reader takes it; its format is known to module_utils/_hetero/site/boards_file.py alone."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: one_line_boards
short_description: Write each board of a boards file in one line
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns the text of a boards file (C(tilera_boards)) into text that names the same boards, each in one line, without
    comments and without blanks in C(cpu_info).
  - The reader in Nova's bare-metal driver for Tilera boards takes no other.
positional: _input
options:
  _input:
    description: Text of the boards file.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: A copy for Nova
  ansible.builtin.copy:
    content: "{{ lookup('ansible.builtin.file', 'boards') | hetero.compute.one_line_boards }}"
    dest: /tftpboot/tilera_boards
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The text, with the names of the columns as a comment in its first line.
  type: str
"""

one_line_boards = lazy_filter("one_line_boards")


class FilterModule:
    def filters(self):
        return {"one_line_boards": one_line_boards}
