# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the root of a system lies, as requests, claims, image.json and kernel.d name it: on the proxy (NFS), on the
board's own disk, or in its RAM.
"""

from __future__ import annotations

NFS, DISK, RAM = "nfs", "disk", "ram"
BOOT_SOURCES = (NFS, DISK, RAM)
