# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.unknown_flavors`: flavors of limits and reservations that there are not."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: unknown_flavors
short_description: Say which flavors of limits and reservations there are not
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - A node does not know the flavors of a site, so a limit for a misspelt one would limit nothing. This filter looks for
    each name of a table in the flavors that the controller knows.
positional: _input, flavors, variable
options:
  _input:
    description:
      - Limits, as O(hetero.compute.tftp_proxy#role:main:tftp_proxy_owner_limits), or reservations, as
        O(hetero.compute.tftp_proxy#role:main:tftp_proxy_reservations). What else is wrong with them is not looked at.
    type: raw
    required: true
  flavors:
    description: The flavors by name, as filter P(hetero.compute.flavors#filter) returns them.
    type: dict
    required: true
  variable:
    description: What the mistakes call the table.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Check the limits of owners
  ansible.builtin.assert:
    that: mistakes | length == 0
    fail_msg: "{{ mistakes }}"
  vars:
    known: "{{ none | hetero.compute.flavors }}"
    mistakes: "{{ {'ci': {'flavors': {'tp64.8x9': 0}}} | hetero.compute.unknown_flavors(known, 'my_limits') }}"
"""

RETURN = r"""
_value:
  description: One for each flavor that there is not, with C(thing), C(what) and C(remedy), which names the nearest.
  type: list
  elements: dict
  sample:
    - thing: my_limits.ci.flavors.tp64.8x9
      what: is "tp64.8x9", which is no flavor
      remedy: did you mean tp64.8x8?
"""

unknown_flavors = lazy_filter("unknown_flavors")


class FilterModule:
    def filters(self):
        return {"unknown_flavors": unknown_flavors}
