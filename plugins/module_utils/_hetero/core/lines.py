# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for people in a module's result, in the form that the progress display reads."""

from __future__ import annotations

from typing import Any


def line(instance: str | None, node: str | None, phase: str, text: str, seconds: float | None = None) -> dict[str, Any]:
    """Return one line.

    :param instance, node: whom and which node it concerns; None, or an empty text, for none.
    :param seconds: seconds that what it tells of took.
    """
    return dict(instance=instance, node=node, phase=phase, text=text, seconds=seconds)
