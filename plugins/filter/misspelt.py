# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.misspelt`: what is wrong with the options that a playbook was given."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.late import late

DOCUMENTATION = r"""
name: misspelt
short_description: Say which extra variables are misspelt options, and what is none
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks at the variables that the playbook was given with C(-e), which Ansible takes whatever they are called.
  - One is misspelt where it is no option, and a single letter makes an option of it - one too many, one that is
    missing, two that are swapped, or, in an option of six letters and more, a wrong one; or where it is one but for
    capitals, or dashes before it. Any other is an operator's own.
  - What C(-e) holds besides NAME=VALUE, such as of V(hours = 2), is said as well. Ansible keeps it for nobody.
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

misspelt = late("misspelt")


class FilterModule:
    def filters(self):
        return {"misspelt": misspelt}
