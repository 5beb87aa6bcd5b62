# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.ssh_folder`: why no files for `ssh -F` can be written into a folder, before a boot."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: ssh_folder
short_description: Why instances' files for ssh -F cannot be written into a folder
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Returns in words what M(hetero.compute.ssh_config) would fail at with this folder, or an empty text. Nothing is
    written.
  - A folder that is not there can be made where the one above it can be written to.
positional: _input
options:
  _input:
    description: The folder on the controller; empty or none for no folder.
    type: raw
    required: true
  names:
    description: Instances that are to get a file there. One that is there and is no file of an instance is told.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Stop before anything is asked for
  ansible.builtin.assert:
    that: hetero_ssh_folder | hetero.compute.ssh_folder(['jackie']) == ''
"""

RETURN = r"""
_value:
  description: What is wrong, and what to do.
  type: str
"""

ssh_folder = lazy_filter("ssh_folder")


class FilterModule:
    def filters(self):
        return {"ssh_folder": ssh_folder}
