# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.status_page`: boards as a page for a browser. How it is built is plugin_utils/page's."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: status_page
short_description: Show boards and GPU hosts as an HTML page
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Makes one self-contained HTML page, without scripts, of what proxy nodes know of their boards and GPU hosts
    of their GPUs.
  - Shows what needs a look, each PDU's boards by outlet, instances and how each booted, leases, and the newest events.
  - Texts are escaped, whoever wrote them.
positional: _input
options:
  _input:
    description: What filter P(hetero.compute.snapshots#filter) makes, from boards with their C(events).
    type: dict
    required: true
  title:
    description: Title of the page.
    type: str
    default: Boards
  hosts:
    description: The same of GPU hosts.
    type: dict
    default: {}
seealso:
  - plugin: hetero.compute.snapshots
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write the page
  ansible.builtin.copy:
    dest: /var/www/html/boards.html
    content: "{{ info.results | hetero.compute.snapshots | hetero.compute.status_page }}"
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""

status_page = lazy_filter("status_page")


class FilterModule:
    def filters(self):
        return {"status_page": status_page}
