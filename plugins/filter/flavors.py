# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.flavors`: the default flavors and a site's own as one table, or all that is wrong with it."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

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
    description: The default flavors by name. Without them, those of the collection.
    type: dict
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
    flavors: "{{ none | hetero.compute.flavors(file=inventory_dir ~ '/flavors.yml') }}"
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

flavors = lazy_filter("flavors")


class FilterModule:
    def filters(self):
        return {"flavors": flavors}
