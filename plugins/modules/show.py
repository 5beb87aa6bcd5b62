#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; it does all of the work, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: show
short_description: Print lines as they are, and keep texts in files of the controller
version_added: 0.1.0
description:
  - Prints lines on the controller through Ansible's own display, without quotes or indentation.
  - This is an action plugin. It touches no host.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  lines:
    description: What to print.
    type: list
    elements: str
    default: []
  files:
    description:
      - What to write, by the file's path on the controller. A reader gets the old text or the new one, whole.
      - Check mode writes nothing.
    type: dict
    default: {}
  mode:
    description: The files' permissions, in octal.
    type: str
    default: "0644"
  stats:
    description:
      - What to give to the play's statistics besides, as C(ansible.builtin.set_stats) does.
      - AWX keeps it as the job's artifacts.
    type: dict
    default: {}
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Say what to do next
  hetero.compute.show:
    lines:
      - jackie is running on board0.

- name: Show a table
  hetero.compute.show:
    lines: "{{ nodes.boards | hetero.compute.status_table }}"
"""

RETURN = r""" # """
