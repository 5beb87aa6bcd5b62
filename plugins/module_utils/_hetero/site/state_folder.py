# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names below a proxy's state folder that more than one room of the house goes by."""

from __future__ import annotations

#: The folder of the boards' roots; and that of the older layout, whose uppers, or copies, lie on one file system.
ROOTS, OLDER = "board-roots", "roots"
#: In a root's folder: its file system, which nothing else of ours may lie in.
ROOT_FILE = "root.ext4"
