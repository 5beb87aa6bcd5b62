# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that give a host's GPUs to containers."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  lxcpath:
    description: Folder of the containers. By default the configuration's, else V(/var/lib/lxc).
    type: path
  overrides:
    description:
      - What the operator knows better than the driver, as M(hetero.compute.gpu_facts) takes it. By default the
        configuration's.
    type: dict
  state_db:
    description: >-
      The host's SQLite database of instances and allocations. By default the configuration's, else
      V(/var/lib/hetero/host.db).
    type: path
"""
