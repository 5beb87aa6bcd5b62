# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `hetero.compute.satisfies`: one requirement of extra_specs. Its rules are in scheduling/extra_specs.py."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ..module_utils._hetero.core.errors import BadInput
from ..module_utils._hetero.scheduling.extra_specs import satisfies as satisfied

DOCUMENTATION = r"""
name: satisfies
short_description: Does a value meet one requirement of a flavor's extra_specs
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Compares by the operators of Nova's C(extra_specs). V(=) is at least; V(==), V(!=), V(>=) and V(<=) compare numbers;
    V(s==), V(s!=), V(s<), V(s<=), V(s>) and V(s>=) compare texts; V(<in>) finds a part of a text or a member of a list,
    and V(<all-in>) finds all of several; V(<or> a <or> b) is one of several. Any other text is compared as a whole.
  - As in Nova, an operator is followed by a blank and takes one word, and C(none) meets nothing.
  - Fails where Nova does, for instance when a number is asked for and the value is none.
positional: _input, requirement
options:
  _input:
    description: The value of a node. Anything but a list is taken as its text.
    type: raw
    required: true
  requirement:
    description: The requirement.
    type: str
    required: true
  key:
    description: What an error calls the requirement, such as the key of C(extra_specs).
    type: str
    default: requirement
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Take part only with two free GPUs
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }} will do"
  when:
    - hetero_gpus | length is hetero.compute.satisfies('>= 2')
    - hetero_hypervisor | default(none) is hetero.compute.satisfies('s== LXC')
"""

RETURN = r"""
_value:
  description: Whether the value meets the requirement.
  type: bool
"""


def satisfies(value, requirement, key="requirement"):
    try:
        return satisfied(value, requirement, key)
    except BadInput as error:
        raise AnsibleFilterError(f"hetero.compute.satisfies: {error}") from error


class TestModule:
    def tests(self):
        return {"satisfies": satisfies}
