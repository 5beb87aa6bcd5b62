# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.printable`: a text of others on one line that a terminal shows and does not obey."""

from __future__ import annotations

from typing import Any

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import one_line


def printable(text: Any) -> str:
    return one_line(str(text))
