# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access control lists as setfacl(1) makes them, which is not needed."""

from __future__ import annotations

import os
import struct

#: linux/posix_acl_xattr.h: the attribute, its version, and tags of entries: owner, user, group, mask, others.
ATTRIBUTE, VERSION = "system.posix_acl_access", 2
OWNER, USER, GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 0xFFFFFFFF


def let_write(path, user):
    """Let another user write in a folder (setfacl -m u:USER:rwx PATH)."""
    entries = [(OWNER, 7, NOBODY), (USER, 7, user), (GROUP, 5, NOBODY), (MASK, 7, NOBODY), (OTHERS, 0, NOBODY)]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, ATTRIBUTE, struct.pack("<I", VERSION) + packed)
