# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.flavors`: the default flavors and a site's own as one table, or all that is wrong with it."""

from __future__ import annotations

import os

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils.flavors.checking import table_defects
from ansible_collections.hetero.compute.plugins.module_utils.printable import brief
from ansible_collections.hetero.compute.plugins.plugin_utils.flavors_file import FlavorsFile

DOCUMENTATION = r"""
name: flavors
short_description: Put the default flavors and your own together
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Adds a site's own flavors (instance types) to a table of them.
  - Fails with everything that is wrong with them, each with its flavor, its key and what to write instead, and its line
    where it is in a file.
  - A flavor of your own takes the place of a default of the same name.
positional: _input, own, file
options:
  _input:
    description: The default flavors by name, such as C(hetero_instance_types).
    type: dict
    required: true
  own:
    description: Flavors of your own by name, such as C(hetero_extra_instance_types).
    type: dict
    default: {}
  file:
    description:
      - A file with flavors by name, in YAML or JSON; it may hold them under C(hetero_extra_instance_types).
      - The playbooks take the one that variable C(hetero_instance_types_file) names.
    type: path
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
  - plugin: hetero.compute.schedule
    plugin_type: filter
"""

EXAMPLES = r"""
- name: All flavors
  ansible.builtin.set_fact:
    flavors: "{{ hetero_instance_types | hetero.compute.flavors(file=inventory_dir ~ '/flavors.yml') }}"
# flavors.yml:
#   arm.small: {memory_mb: 4096, vcpus: 4, local_gb: 50, cpu_arch: aarch64}
#   kvm.gpu:
#     memory_mb: 8192
#     vcpus: 4
#     local_gb: 40
#     extra_specs: {hypervisor: s== KVM, "pci_passthrough:alias": "a1:1"}
"""

RETURN = r"""
_value:
  description: The flavors by name, each with its C(name).
  type: dict
"""

VARIABLE = "hetero_extra_instance_types"


def flavors(defaults, own=None, file=None):
    own = own or {}
    for what, table in (("before the bar", defaults), (f"as {VARIABLE}", own)):
        if not isinstance(table, dict):
            raise AnsibleFilterError(f"hetero.compute.flavors needs a mapping of flavors by name {what}")
    wrong = [f"{VARIABLE}: {_of(name)}{defect.text}" for name, defect in table_defects(own, defaults)]
    found = {**defaults, **own}
    if file:
        read = FlavorsFile(os.path.expanduser(str(file)), found)
        twice = [name for name in read.flavors if name in own]
        wrong += [f"{file}: flavor {name} is in {VARIABLE} as well: leave one out" for name in twice]
        wrong += read.defects
        found.update(read.flavors)
    if wrong:
        raise AnsibleFilterError("\n".join(wrong))
    return {name: dict(flavor, name=name) for name, flavor in found.items()}


def _of(name):
    return f"flavor {brief(name)}: " if isinstance(name, str) else ""


class FilterModule:
    def filters(self):
        return {"flavors": flavors}
