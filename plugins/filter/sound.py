# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.sound`: what was read for a request, unless something is wrong with it by now."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: sound
short_description: Fail if what was read for a request is wrong
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Returns what filters such as P(hetero.compute.login_key#filter) and P(hetero.compute.user_data#filter) returned, if
    there is no problem with it.
  - Ansible reads a variable's files anew each time that it is used. A file that was there when the request was looked
    at may be gone when the request is sent, and must not count as one that nobody named.
positional: _input
options:
  _input:
    description: What was read, with its C(problem), which is empty for none.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: The key that was asked for, and no other
  ansible.builtin.debug:
    msg: "{{ ({'key': 'jackie'} | hetero.compute.login_key | hetero.compute.sound).public }}"
"""

RETURN = r"""
_value:
  description: What was given.
  type: dict
"""

sound = lazy_filter("sound")


class FilterModule:
    def filters(self):
        return {"sound": sound}
