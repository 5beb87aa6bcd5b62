# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection's plugins are made of."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.kept_compiled import put_first

put_first()
