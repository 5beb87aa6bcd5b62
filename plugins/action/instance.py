# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows module instance and prints each phase of its instances within two seconds. The work is the module's."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Follows


class ActionModule(Follows):
    """Module in the background, followed."""
