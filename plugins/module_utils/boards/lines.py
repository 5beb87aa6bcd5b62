# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a progress line, the same from a module and from the action plugin that follows one.

It imports nothing, since the controller uses it too.
"""

from __future__ import annotations


def phase_line(instance, node, phase, text, seconds=None):
    """One line: who, where, which phase, what happened, how long it took ("jackie  board0  power     … 0.4 s").

    Only the first line of `text` is shown; further ones are evidence, for events and results.
    """
    text = text.splitlines()[0] if text else ""
    line = f"{instance or '-':<7} {node:<7} {phase:<9} {text}"
    return line if seconds is None else f"{line:<71} {seconds:>5.1f} s"
