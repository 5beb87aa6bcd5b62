# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a guest with a device could raise any interrupt of the host. A device can, behind an IOMMU that does not
remap interrupts; VFIO refuses such devices unless `allow_unsafe_interrupts` is on.

This file states facts; machine.py and info.py draw the conclusions.
"""

from __future__ import annotations

import glob
import os
import re

from ...core.machine import text_of

OPTION = "allow_unsafe_interrupts"
#: VFIO's IOMMU back ends: the old one, and the one since Linux 6.2.
BACK_ENDS = ("vfio_iommu_type1", "iommufd")
#: Folders of modprobe.d(5), in order. A file hides one of the same name in a later folder.
MODPROBE = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")
#: Values that the kernel takes as true (lib/kstrtox.c, kstrtobool).
TRUE = r"(?:[yYtT1][^\s]*|[oO][nN])"
REMEDY = "take it out and reboot: a guest with a device could raise any interrupt of this host"


def allowed(sys: str) -> list[str]:
    """Return the paths of parameters by which the running kernel allows unsafe interrupts."""
    paths = [os.path.join(sys, "module", name, "parameters", OPTION) for name in BACK_ENDS]
    return [path for path in paths if text_of(path).strip() == "Y"]


def unsafe(root: str = "/") -> list[str]:
    """Return the files that allow them now, or will when the module is loaded or the machine boots."""
    found = allowed(os.path.join(root, "sys"))
    names = "|".join(name.replace("_", "[-_]") for name in BACK_ENDS)
    shown = set()
    for folder in MODPROBE:
        for path in sorted(glob.glob(os.path.join(root, folder, "*.conf"))):
            option = rf"^\s*options\s+(?:{names})\s(?:.*\s)?{OPTION}(?:={TRUE})?(?:\s|$)"
            if os.path.basename(path) not in shown and re.search(option, text_of(path), re.MULTILINE):
                found.append(path)
            shown.add(os.path.basename(path))
    for path in ("proc/cmdline", "boot/grub/grub.cfg"):
        if re.search(rf"(?:^|\s)(?:{names})\.{OPTION}(?:={TRUE})?(?:\s|$)", text_of(os.path.join(root, path))):
            found.append(os.path.join(root, path))
    return found


def remapped(root: str = "/") -> bool:
    """Return whether the IOMMU remaps interrupts; x86 kernels then name their chips IR-…"""
    return " IR-" in text_of(os.path.join(root, "proc/interrupts"))
