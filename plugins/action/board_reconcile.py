# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module, says what is waited for while it lasts, and checks what is answered: this one, and those that
meta/runtime.yml names.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Checks


class ActionModule(Checks):
    """The call, and a look at what is answered."""
