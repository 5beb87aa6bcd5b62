# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a PCI device as a guest has it, by VFIO: `hold.py GROUP ADDRESS` opens it, and keeps it until it is ended."""

import fcntl
import os
import signal
import struct
import sys

# linux/vfio.h: _IO(';', 100 + N)
SET_IOMMU, GROUP_SET_CONTAINER, GROUP_GET_DEVICE_FD = 0x3B66, 0x3B68, 0x3B6A
TYPE1_IOMMU = 1

container = os.open("/dev/vfio/vfio", os.O_RDWR)
group = os.open(f"/dev/vfio/{sys.argv[1]}", os.O_RDWR)
fcntl.ioctl(group, GROUP_SET_CONTAINER, struct.pack("i", container))
fcntl.ioctl(container, SET_IOMMU, TYPE1_IOMMU)
device = fcntl.ioctl(group, GROUP_GET_DEVICE_FD, sys.argv[2].encode() + b"\0")
print("held", flush=True)
signal.pause()
