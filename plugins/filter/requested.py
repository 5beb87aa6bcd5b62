# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.requested`: one value of a request, read from the variables of the play."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import context_filter

DOCUMENTATION = r"""
name: requested
short_description: Read one value of a request from the variables of a play
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Reads what the playbooks of this collection are asked for, with its defaults, such as V(count) from the variable of
    that name, and V(owner) from the variable of that name, the user of AWX, or the user of the command line.
  - What a form left empty says nothing. Variables that the value does not need are not looked at.
positional: _input
options:
  _input:
    description:
      - The name of the value, such as V(count), V(flavor), V(names), V(owner) or V(request). An error lists all.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Say how many are asked for
  ansible.builtin.debug:
    msg: "{{ 'count' | hetero.compute.requested }} of {{ flavor }}"
"""

RETURN = r"""
_value:
  description: The value.
  type: raw
  sample: 1
"""

requested = context_filter("requested")


class FilterModule:
    def filters(self):
        return {"requested": requested}
