# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that work on a proxy node's boards."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  boards_file:
    description: The boards file (C(tilera_boards)) on the proxy node.
    type: path
    default: /tftpboot/tilera_boards
  config:
    description: The proxy node's configuration, written by role P(hetero.compute.tftp_proxy#role).
    type: path
    default: /etc/hetero/proxy.json
  state_db:
    description: The SQLite database of claims, states and events.
    type: path
    default: /var/lib/hetero/state.db
"""
