# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupts that a device can raise. If these fail, a guest is given a card by which it can raise any interrupt of the
host, or no guest is given any.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.interrupts import (
    allowed,
    remapped,
    unsafe,
)


def put(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return str(root / path)


def test_what_the_running_kernel_allows(tmp_path):
    """Lost: the host, to a guest, while the parameter is on."""
    name = "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"
    path = put(tmp_path, name, "N\n")
    assert allowed(str(tmp_path / "sys")) == []
    put(tmp_path, name, "Y\n")
    assert allowed(str(tmp_path / "sys")) == unsafe(str(tmp_path)) == [path]


@pytest.mark.parametrize(
    ("line", "is_unsafe"),
    [
        ("options vfio_iommu_type1 allow_unsafe_interrupts=1", True),
        ("options vfio-iommu-type1 allow_unsafe_interrupts=Y", True),
        ("options vfio_iommu_type1 dma_entry_limit=9 allow_unsafe_interrupts=on", True),
        ("options iommufd allow_unsafe_interrupts", True),
        ("options vfio_iommu_type1 allow_unsafe_interrupts=0", False),
        ("options vfio_iommu_type1 allow_unsafe_interrupts=off", False),
        ("# options vfio_iommu_type1 allow_unsafe_interrupts=1", False),
        ("options vfio_pci allow_unsafe_interrupts=1", False),
    ],
)
def test_what_the_next_boot_would_allow(tmp_path, line, is_unsafe):
    """Lost: the same from the next boot on; or a host that is refused for a comment."""
    path = put(tmp_path, "etc/modprobe.d/vfio.conf", f"# ours\n{line}\n")
    assert unsafe(str(tmp_path)) == ([path] if is_unsafe else [])


def test_a_file_hides_its_namesake_further_down(tmp_path):
    """Lost: the way to turn it off that modprobe.d(5) gives an administrator."""
    put(tmp_path, "lib/modprobe.d/vfio.conf", "options iommufd allow_unsafe_interrupts=1\n")
    assert unsafe(str(tmp_path)) == [str(tmp_path / "lib/modprobe.d/vfio.conf")]
    put(tmp_path, "etc/modprobe.d/vfio.conf", "")
    assert unsafe(str(tmp_path)) == []


@pytest.mark.parametrize("path", ["proc/cmdline", "boot/grub/grub.cfg"])
def test_the_kernels_command_line_counts(tmp_path, path):
    """Lost: the same, where it was said at boot."""
    found = put(tmp_path, path, "quiet vfio_iommu_type1.allow_unsafe_interrupts=1 splash\n")
    assert unsafe(str(tmp_path)) == [found]
    put(tmp_path, path, "quiet vfio_iommu_type1.allow_unsafe_interrupts=N splash\n")
    assert unsafe(str(tmp_path)) == []


def test_whether_interrupts_are_remapped(tmp_path):
    """Lost: cards for guests, on a machine that needs no such option."""
    put(tmp_path, "proc/interrupts", " 8:  1  IO-APIC  8-edge  rtc0\n")
    assert not remapped(str(tmp_path))
    put(tmp_path, "proc/interrupts", " 8:  1  IR-IO-APIC  8-edge  rtc0\n")
    assert remapped(str(tmp_path))
