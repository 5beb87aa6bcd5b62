# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.unknown_variables`: variables that begin with a role's name, and are misspelt ones of it."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: unknown_variables
short_description: Say which variables are misspelt ones of a role
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Ansible accepts variables under any name, and a role goes on without one that it does not know. A variable that
    begins with the role's name and is like one of the role's is meant for it; others may be the site's own.
positional: _input, known, prefix
options:
  _input:
    description: Names of the variables that there are and that begin with the role's name.
    type: list
    elements: str
    required: true
  known:
    description: Names of the variables that the role knows.
    type: list
    elements: str
    required: true
  prefix:
    description: What all of them begin with.
    type: str
    default: ""
  slips:
    description: Whether to name only those that a single letter makes a known one of.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Check the variables
  ansible.builtin.assert:
    that: mistakes | length == 0
    fail_msg: "{{ mistakes }}"
  vars:
    mistakes: "{{ query('ansible.builtin.varnames', '^mine_') | hetero.compute.unknown_variables(['mine_path']) }}"
"""

RETURN = r"""
_value:
  description: One for each that is not known and like one that is, with C(thing), C(what) and C(remedy).
  type: list
  elements: dict
  sample:
    - thing: mine_pth
      what: is no variable of this role
      remedy: write mine_path; a variable of your own needs another name
"""

unknown_variables = lazy_filter("unknown_variables")


class FilterModule:
    def filters(self):
        return {"unknown_variables": unknown_variables}
