# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot driver of a site's own may import, as `hetero_drivers.boot`.

Whoever takes a name away here, or changes what one promises, raises API and OLDEST, and says in the guide Writing a
boot driver what to change. Whoever adds one raises API alone.
"""

from __future__ import annotations

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, StepFailed
from .driver import (
    DISK_ROOT,
    ENTRY,
    FIRMWARE,
    INITRD,
    KERNEL,
    NFS,
    NFS_ROOT,
    RAM_ROOT,
    SYSTEM,
    TFTP,
    BootDriver,
    System,
)
from .pxe import Pxe, initrd_name, kernel_name
from .uboot import Uboot

#: The number that a driver's file says as BOOT_API; of an older one than OLDEST it is refused.
API, OLDEST = 1, 1

__all__ = [
    "DISK_ROOT",
    "ENTRY",
    "FIRMWARE",
    "INITRD",
    "KERNEL",
    "NFS",
    "NFS_ROOT",
    "RAM_ROOT",
    "SYSTEM",
    "TFTP",
    "BadInput",
    "BootDriver",
    "Deadline",
    "HeteroError",
    "Pxe",
    "StepFailed",
    "System",
    "Uboot",
    "initrd_name",
    "kernel_name",
]
