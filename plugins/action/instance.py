# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows a module that takes long, and prints each phase within two seconds: this one, and those that name it."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Follows


class ActionModule(Follows):
    """The module in the background, followed."""
