# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file without a name, for what is needed once. It is gone when it is closed, also where its process is killed."""

from __future__ import annotations

from typing import IO


def scratch(folder: str) -> IO[bytes]:
    """Return an empty file on a folder's file system."""
    # Imported here, because nearly no call of a module needs it, and it loads much.
    import tempfile

    return tempfile.TemporaryFile(dir=folder)
