# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.reconcile_table`: what was found of boards, containers and GPUs, as one table."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: reconcile_table
short_description: Show what was found of boards, containers and GPUs as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns results of M(hetero.compute.board_reconcile), M(hetero.compute.host_reconcile) and
    M(hetero.compute.gpu_reconcile) into lines with aligned columns, a heading first, and sums last. What is too long
    for a terminal of 100 columns stands below its row.
  - A board of which something was mended and something else is to be looked at counts in both sums.
positional: _input, hosts, gpus
options:
  _input:
    description: Results of M(hetero.compute.board_reconcile), one for each proxy node.
    type: list
    elements: dict
    required: true
  hosts:
    description: Results of M(hetero.compute.host_reconcile), one for each GPU host.
    type: list
    elements: dict
    default: []
  gpus:
    description: Results of M(hetero.compute.gpu_reconcile), one for each GPU host.
    type: list
    elements: dict
    default: []
  check:
    description: Whether the results are of check mode, so that nothing was mended.
    type: bool
    default: false
seealso:
  - module: hetero.compute.board_reconcile
"""

EXAMPLES = r"""
- name: Show what was found
  hetero.compute.show:
    lines: "{{ found.results | hetero.compute.reconcile_table }}"
# NODE    RECORD     INSTANCE  OUTLET  SSH      FOUND            DONE
# board0  running    jackie    on      own key  missing: export  put back
# board1  power off  -         on      -
#     its outlet is on, and nobody has it: off, cleaned, free
# board2  power off  -         off     -        as recorded
# 3 boards: 1 as recorded, 2 mended, 0 to look at
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

reconcile_table = lazy_filter("reconcile_table")


class FilterModule:
    def filters(self):
        return {"reconcile_table": reconcile_table}
