# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.printable`: a text of others on one line that a terminal shows and does not obey."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: printable
short_description: Make a text of others safe to print
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Shows what a terminal obeys, what nobody sees, and ends of lines, as escapes.
  - What was typed into a form may hold any of these.
options:
  _input:
    description: The text.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Say what was asked for
  ansible.builtin.debug:
    msg: "{{ board | hetero.compute.printable }}"
"""

RETURN = r"""
_value:
  description: The text on one line.
  type: str
"""

printable = lazy_filter("printable")


class FilterModule:
    def filters(self):
        return {"printable": printable}
