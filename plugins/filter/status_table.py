# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.status_table`: nodes as an aligned table. What is in it was found out by board_info and
host_info.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: status_table
short_description: Show boards and GPU hosts as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns boards and GPU hosts into lines with aligned columns, a heading first, for M(hetero.compute.show). A note that
    has no room in its row, of 120 columns, stands below it.
  - For a proxy node with roots of boards, a line below the table says how much space they are promised and how much
    there is.
  - A GPU host has a line for each instance on it. Its state says how many of its GPUs are free.
positional: _input, fits, hosts, as_json
options:
  _input:
    description:
      - Boards as M(hetero.compute.board_info) returns them, or by proxy node as filter
        P(hetero.compute.snapshots#filter) makes them.
      - Where several proxy nodes have boards, a board's name comes with its proxy's.
    type: raw
    required: true
  fits:
    description: Instance types by name. Column FITS names those that a node can serve.
    type: dict
    default: {}
  as_json:
    description: Whether it is all that is known, as one line of JSON with C(proxies) and C(hosts), and no table.
    type: bool
    default: false
  hosts:
    description: GPU hosts by name, as filter P(hetero.compute.snapshots#filter) makes them; those that
      answered are shown.
    type: dict
    default: {}
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show who has which board
  hetero.compute.show:
    lines: "{{ info.boards | hetero.compute.status_table(fits=hetero_instance_types) }}"
# NODE    KIND   ARCH      FITS        STATE        INSTANCE  OWNER  ADDRESS     IMAGE      SINCE  NOTE
# board0  board  x86_64    x86.small   running      jackie    jo     10.0.2.1    debian-12  2 min
# board1  board  x86_64    x86.small   power off    -         -      10.0.2.2    -          -
# gpu1    gpu    fermi ×4  cg1.xlarge  2 of 4 free  ml-7      jo     10.0.81.10  container  3 d    0000:05:00.0
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

status_table = lazy_filter("status_table")


class FilterModule:
    def filters(self):
        return {"status_table": status_table}
