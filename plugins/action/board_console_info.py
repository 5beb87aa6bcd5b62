# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the lines that module board_console_info returns. All of the work is the module's."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import ShowsLines


class ActionModule(ShowsLines):
    """Module, then its lines."""
