# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.mistakes`: what is wrong with a request, as a list of texts."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import context_filter

DOCUMENTATION = r"""
name: mistakes
short_description: Say what is wrong with a request
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks at what the playbooks of this collection are asked for, in the variables of the play, and says all that is
    wrong with it at once, before anything is claimed.
  - It looks at nothing that was not named, as that may be a variable of somebody's own.
positional: _input
options:
  _input:
    description: What is looked at, such as V(instance), V(flavor), V(board), V(key) or V(owner).
    type: list
    elements: str
    required: true
  words:
    description: Options whose value is a number or one of some words, such as V(count), V(hours) or V(force).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Check the request
  ansible.builtin.assert:
    that: problems | length == 0
    fail_msg: "{{ problems | join('; ') }}"
  vars:
    problems: "{{ ['instance', 'flavor'] | hetero.compute.mistakes(['count', 'hours']) }}"
"""

RETURN = r"""
_value:
  description: What is wrong and what to give instead, first of the words, then of what is looked at besides.
  type: list
  elements: str
  sample: ["count is 0: give a whole number from 1 to 10000, such as -e count=3"]
"""

mistakes = context_filter("mistakes")


class FilterModule:
    def filters(self):
        return {"mistakes": mistakes}
