# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.credential_mistakes`: credentials of PDUs that no login can be with."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: credential_mistakes
short_description: Say which credentials of PDUs are none
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - YAML reads C(yes) as true, C(12.50) as a number and C(2024-01-31) as a date, even where a password was meant. This
    filter reports that on the controller, without the value, so that no secret is sent anywhere to be checked.
options:
  _input:
    description: PDU, key, secret; as O(hetero.compute.tftp_proxy#role:main:tftp_proxy_pdu_credentials).
    type: dict
    required: true
  variable:
    description: What the mistakes call the variable.
    type: str
    default: tftp_proxy_pdu_credentials
"""

EXAMPLES = r"""
- name: Check the credentials
  ansible.builtin.assert:
    that: mistakes | length == 0
    fail_msg: "{{ mistakes }}"
  vars:
    mistakes: "{{ my_credentials | hetero.compute.credential_mistakes('my_credentials') }}"
"""

RETURN = r"""
_value:
  description: One for each that is none, with C(thing), C(what) and C(remedy), and never with the secret.
  type: list
  elements: dict
  sample:
    - thing: tftp_proxy_pdu_credentials, pdu-a
      what: its password is true or false to YAML
      remedy: put it in quotes
"""

credential_mistakes = lazy_filter("credential_mistakes")


class FilterModule:
    def filters(self):
        return {"credential_mistakes": credential_mistakes}
