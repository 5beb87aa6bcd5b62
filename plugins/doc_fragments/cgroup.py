# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that look into device cgroups."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - root on the host, with C(CAP_SYS_ADMIN) outside of any user namespace for cgroup v2
  - liblxc for O(container)
options:
  cgroup:
    description:
      - A cgroup's directory, like V(/sys/fs/cgroup/system.slice/demo.service), or its name below the hierarchies, like
        V(/system.slice/demo.service).
      - On a host with cgroup v1 and v2 the cgroup of this name in the other hierarchy counts as well, where there is
        one.
    type: path
  container:
    description: A running LXC container.
    type: str
  lxcpath:
    description: The folder of O(container).
    type: path
    default: /var/lib/lxc
  rules:
    description:
      - Rules like V(c 195:0 rw). The kind is V(c) or V(b), V(*) stands for each number, and V(a) alone is all devices.
      - V(r) and V(w) are for opening, both at once where both stand in the rule; V(m) is for making the node.
    type: list
    elements: str
    required: true
"""
