# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module and prints the lines of its result: this one, and those that name it (meta/runtime.yml)."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import ShowsLines


class ActionModule(ShowsLines):
    """The call, a look at what is answered, and its lines."""
