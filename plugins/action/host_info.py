# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module host_info from its node's copy of the collection. The work is the module's."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Checked


class ActionModule(Checked):
    """Nothing but the call, and a look at what is answered."""
