# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.misspelt`: what is wrong with the options that a playbook was given."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: misspelt
short_description: Say which extra variables are misspelt options, and what is none
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks at the variables that the playbook was given with C(-e), which Ansible accepts under any name.
  - A variable is misspelt if it is no option, but differs from one by a single letter (an additional or missing one,
    two that are swapped or, in options of six and more letters, a wrong one), by capitals, or by dashes before it. Any
    other variable is an operator's own.
  - Words of C(-e) that are no NAME=VALUE, as in V(hours = 2), are reported as well, because Ansible ignores them.
positional: _input
options:
  _input:
    description: Names of the options.
    type: list
    elements: str
    required: true
  rest:
    description: An option whose value goes on over blanks to the end of its C(-e), as the play puts it together.
    type: str
"""

EXAMPLES = r"""
- name: Check the request
  ansible.builtin.assert:
    that: problem | length == 0
    fail_msg: "{{ problem }}"
  vars:
    problem: "{{ ['adopt', 'forget'] | hetero.compute.misspelt }}"
"""

RETURN = r"""
_value:
  description: What is wrong, in words; empty where nothing is.
  type: str
  sample: "adpot is no option: is adopt meant? A variable of your own needs another name"
"""

misspelt = lazy_filter("misspelt")


class FilterModule:
    def filters(self):
        return {"misspelt": misspelt}
