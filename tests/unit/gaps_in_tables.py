# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the kernel that pass over something, as they do while sockets come and go."""

from __future__ import annotations

import io

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import kernel_tables


def with_gaps(monkeypatch, path, word):
    """Have the table at `path` lack the lines with a word, but for each third read."""
    real, turns = open, []

    def read(asked, *given, **more):
        table = real(asked, *given, **more)
        if asked != path:
            return table
        turns.append(asked)
        with table:
            lines = table.read().splitlines(keepends=True)
        return io.StringIO("".join(line for line in lines if len(turns) % 3 == 0 or word not in line))

    monkeypatch.setattr(kernel_tables, "open", read, raising=False)
