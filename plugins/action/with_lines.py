# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same, and prints the lines of its result; meta/runtime.yml says for which modules."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import ShowsLines


class ActionModule(ShowsLines):
    """The call, a look at what is answered, and its lines."""
