# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names below a proxy's state folder that several rooms use."""

from __future__ import annotations

#: The folder of the boards' roots; and that of older releases, where the overlays' upper folders or copies lay.
ROOTS, OLDER = "board-roots", "roots"
#: The file in a root's folder that holds its file system. The collection puts nothing else into that file system.
ROOT_FILE = "root.ext4"
