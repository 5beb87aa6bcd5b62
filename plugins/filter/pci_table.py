# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.pci_table`: PCI devices as an aligned table. What is in it was found out by pci_info."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: pci_table
short_description: Show PCI devices as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns devices into lines with aligned columns, a heading first, for M(hetero.compute.show).
options:
  _input:
    description: Devices as M(hetero.compute.pci_info) returns them.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show which cards there are
  hetero.compute.show:
    lines: "{{ info.devices | hetero.compute.pci_table }}"
# ADDRESS       DRIVER    GROUP  NUMA  TYPE      STATE      HOLDERS  DEVICE
# 0000:85:00.0  pci-stub  12     1     type-PCI  available  -        VGA compatible controller [0300]: … [10de:11bf]
# 0000:86:00.0  vfio-pci  13     1     type-PCI  allocated  qemu-…   VGA compatible controller [0300]: … [10de:11bf]
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

pci_table = lazy_filter("pci_table")


class FilterModule:
    def filters(self):
        return {"pci_table": pci_table}
