# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine has, and what it lacks, to give PCI devices to guests: IOMMU, modules, and its next boot.

This file states facts. Role pci_passthrough knows what is to be written where.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from typing import Any, Dict, Iterable, List

from ...core.command import ended
from ...core.findings import Findings, system
from ...core.machine import missing_packages, text_of
from .interrupts import OPTION, REMEDY, remapped, unsafe

#: ACPI table by which firmware announces its IOMMU → words for the kernel's command line
#: (Documentation/admin-guide/kernel-parameters.txt: AMD's is on by default, Intel's if the kernel was built so).
TABLES: Dict[str, List[str]] = {"DMAR": ["intel_iommu=on"], "IVRS": []}
#: Kernel modules of a driver for guests.
MODULES = {"vfio-pci": ["vfio-pci", "vfio_iommu_type1"], "pci-stub": ["pci-stub"]}
#: What each kernel's initramfs was last made with, written by the hook that makes it.
STAMPS = "initramfs-"


def look(driver: str, arguments: list[str] | None, packages: Iterable[str], root: str = "/") -> Findings:
    """Return all that there is to say of this machine.

    :param arguments: words for the kernel's command line; None for those that its IOMMU needs.
    """
    found = Findings()
    if not system(found):
        return found
    facts = found.facts
    facts["missing_packages"] = missing_packages(packages)
    facts.update(iommu(driver, arguments, found, root))
    interrupts(driver, facts["iommu"], found, root)
    modules(driver, found)
    facts.update(next_boot(facts["arguments"], root))
    return found


def iommu(driver: str, arguments: list[str] | None, found: Findings, root: str) -> dict[str, Any]:
    """Return whether the IOMMU works, and the words that it needs on the kernel's command line."""
    there = [name for name in TABLES if os.path.exists(os.path.join(root, "sys/firmware/acpi/tables", name))]
    working = bool(glob.glob(os.path.join(root, "sys/kernel/iommu_groups/*")))
    if not working and not there and driver == "vfio-pci" and os.uname().machine == "x86_64":
        what = "is not offered by this machine's firmware (no ACPI table DMAR or IVRS)"
        found.defect("IOMMU", what, "switch VT-d or AMD-Vi on in the firmware's set-up")
    if arguments is None:
        arguments = [word for name in there for word in TABLES[name]]
    said = text_of(os.path.join(root, "proc/cmdline")).split()
    return dict(iommu=working, arguments=arguments, missing_arguments=[word for word in arguments if word not in said])


def interrupts(driver: str, working: bool, found: Findings, root: str) -> None:
    """Report a defect if a guest with a device could raise interrupts of the host."""
    if driver != "vfio-pci":
        return
    for path in unsafe(root):
        found.defect(path, f"{OPTION} is on", REMEDY)
    if working and os.uname().machine == "x86_64" and not remapped(root):
        what = "does not remap interrupts, so that VFIO refuses its devices"
        found.note("IOMMU", what, "switch it on in the firmware's set-up, and take intremap=off off the command line")


def modules(driver: str, found: Findings) -> None:
    """Report a defect if the running kernel lacks one of the driver's modules."""
    for name in MODULES[driver]:
        if ended(["modinfo", name]).returncode:
            remedy = "boot Debian's generic kernel (linux-image-amd64); the cloud kernel has no pci-stub"
            found.defect(f"kernel {os.uname().release}", f"has no module {name}", remedy)


def next_boot(arguments: Iterable[str], root: str) -> dict[str, Any]:
    """Return what boots this machine next time, and whether that has what it needs."""
    grub, initramfs = (
        os.path.exists(os.path.join(root, "usr/sbin", name)) for name in ("update-grub", "update-initramfs")
    )
    configured = text_of(os.path.join(root, "boot/grub/grub.cfg"))
    kernels = re.findall(r"^\s*linux\s.*$", configured, re.M)
    lacking = [word for word in arguments if any(word not in line.split() for line in kernels)]
    return dict(
        grub=grub,
        grub_stale=grub and (not kernels or bool(lacking)),
        initramfs=initramfs,
        initramfs_stale=_initramfs_stale(root) if initramfs else [],
    )


def _initramfs_stale(root: str) -> list[str]:
    """Return the versions of kernels whose initramfs has other bindings than udev's rules."""
    rules = text_of(os.path.join(root, "etc/udev/rules.d/40-hetero-pci.rules"))
    wanted = hashlib.sha256(rules.encode()).hexdigest() if rules else ""
    stale = []
    for path in sorted(glob.glob(os.path.join(root, "boot/initrd.img-*"))):
        version = os.path.basename(path)[len("initrd.img-") :]
        stamp = text_of(os.path.join(root, "var/lib/hetero/pci", STAMPS + version)).strip()
        if stamp != wanted:
            stale.append(version)
    return stale
