# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.user_data`: a request's data for cloud-init, or what is wrong with their file."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: user_data
short_description: Read a file with data for cloud-init
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Reads the file on the controller that a request names, and looks whether cloud-init takes it.
  - Says in words what is wrong with it, without a word of what is in it, which may be secret.
positional: _input
options:
  _input:
    description: The file's name; an empty one is none.
    type: str
    required: true
  in_a_job:
    description: Whether a form of AWX asks. It can name no file, as jobs may be able to read the secrets of others.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Is it what cloud-init takes
  ansible.builtin.debug:
    msg: "{{ ('first-boot.yml' | hetero.compute.user_data).problem }}"
"""

RETURN = r"""
_value:
  description: C(text) is what is in the file, C(problem) what is wrong with it, each empty where there is none.
  type: dict
"""

user_data = lazy_filter("user_data")


class FilterModule:
    def filters(self):
        return {"user_data": user_data}
