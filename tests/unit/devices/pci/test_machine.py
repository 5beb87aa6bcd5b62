# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine has to give devices to guests, and what its next boot will bring."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import machine


@pytest.fixture
def root(tmp_path):
    """An Intel machine with GRUB and an initramfs, booted without the IOMMU."""
    for folder in ("sys/firmware/acpi/tables", "sys/kernel/iommu_groups", "proc", "usr/sbin", "boot/grub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/firmware/acpi/tables/DMAR").touch()
    (tmp_path / "proc/cmdline").write_text("root=/dev/sda1 ro quiet\n")
    for name in ("update-grub", "update-initramfs"):
        (tmp_path / "usr/sbin" / name).touch()
    (tmp_path / "boot/initrd.img-6.1.0-1-amd64").touch()
    grub(tmp_path, "quiet")
    return tmp_path


def grub(root, words):
    (root / "boot/grub/grub.cfg").write_text(f"\tlinux\t/vmlinuz-6.1 root=/dev/sda1 ro {words}\n")


def look(root, driver="vfio-pci", arguments=None):
    found = Findings()
    return found, machine.iommu(driver, arguments, found, str(root))


def test_an_iommu_that_is_off(root):
    """The words that it needs are those of the processor's maker, and they are not on this boot's command line."""
    found, facts = look(root)
    assert facts == dict(iommu=False, arguments=["intel_iommu=on"], missing_arguments=["intel_iommu=on"])
    assert found.defects == []


def test_an_iommu_that_is_on(root):
    """Nothing more is asked of the user."""
    (root / "sys/kernel/iommu_groups/0").mkdir()
    (root / "proc/cmdline").write_text("root=/dev/sda1 intel_iommu=on\n")
    assert look(root)[1] == dict(iommu=True, arguments=["intel_iommu=on"], missing_arguments=[])


def test_amds_is_on_by_itself(root):
    """intel_iommu=on on an AMD machine would be asked for at each run."""
    (root / "sys/firmware/acpi/tables/DMAR").rename(root / "sys/firmware/acpi/tables/IVRS")
    assert look(root)[1]["missing_arguments"] == []


def test_firmware_without_one(root):
    """No command line helps: it is switched off in the firmware, which is said before anything is changed."""
    (root / "sys/firmware/acpi/tables/DMAR").unlink()
    (defect,) = look(root)[0].defects
    assert "switch VT-d or AMD-Vi on" in str(defect)
    assert look(root, "pci-stub")[0].defects == []


def test_grub_is_asked_what_it_will_boot(root):
    """A drop-in that update-grub has not read is no command line."""
    assert machine.next_boot(["intel_iommu=on"], str(root))["grub_stale"]
    grub(root, "quiet intel_iommu=on")
    assert not machine.next_boot(["intel_iommu=on"], str(root))["grub_stale"]
    grub(root, "quiet intel_iommu=onion")
    assert machine.next_boot(["intel_iommu=on"], str(root))["grub_stale"]


def test_a_machine_without_grub_or_initramfs(root):
    """A netbooted one has neither."""
    for name in ("update-grub", "update-initramfs"):
        (root / "usr/sbin" / name).unlink()
    assert machine.next_boot(["intel_iommu=on"], str(root)) == dict(
        grub=False, grub_stale=False, initramfs=False, initramfs_stale=[]
    )


def test_an_initramfs_with_other_bindings(root):
    """Its drivers would take the card at the next boot, or keep from it what was given back."""
    rules = root / "etc/udev/rules.d/40-hetero-pci.rules"
    rules.parent.mkdir(parents=True)
    assert machine.next_boot([], str(root))["initramfs_stale"] == []
    rules.write_text("a rule\n")
    assert machine.next_boot([], str(root))["initramfs_stale"] == ["6.1.0-1-amd64"]
    stamp = root / "var/lib/hetero/pci/initramfs-6.1.0-1-amd64"
    stamp.parent.mkdir(parents=True)
    stamp.write_text(hashlib.sha256(b"a rule\n").hexdigest() + "\n")
    assert machine.next_boot([], str(root))["initramfs_stale"] == []
    rules.unlink()
    assert machine.next_boot([], str(root))["initramfs_stale"] == ["6.1.0-1-amd64"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n"),
        ("sys/module/iommufd/parameters/allow_unsafe_interrupts", "Y\n"),
        ("etc/modprobe.d/kvm.conf", "# old\noptions vfio-iommu-type1 dma_entry_limit=9 allow_unsafe_interrupts=1\n"),
        ("usr/lib/modprobe.d/kvm.conf", "options vfio_iommu_type1 allow_unsafe_interrupts\n"),
        ("proc/cmdline", "root=/dev/sda1 vfio_iommu_type1.allow_unsafe_interrupts=on quiet\n"),
        ("boot/grub/grub.cfg", "\tlinux /vmlinuz ro vfio_iommu_type1.allow_unsafe_interrupts=1\n"),
    ],
)
def test_interrupts_that_a_guest_may_raise(root, path, text):
    """Lost: the host, to any guest that was given a device; now, or from the next boot on."""
    write(root / path, text)
    found = Findings()
    machine.interrupts("vfio-pci", True, found, str(root))
    (defect,) = found.defects
    assert str(defect).startswith(f"{root}/{path}: allow_unsafe_interrupts is on: take it out and reboot")
    machine.interrupts("pci-stub", True, found, str(root))
    assert len(found.defects) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n"),
        ("etc/modprobe.d/kvm.conf", "options vfio_iommu_type1 allow_unsafe_interrupts=0\n"),
        ("etc/modprobe.d/kvm.conf", "#options vfio_iommu_type1 allow_unsafe_interrupts=1\n"),
        ("etc/modprobe.d/kvm.conf", "options other allow_unsafe_interrupts=1\n"),
        ("etc/modprobe.d/kvm.conf.old", "options vfio_iommu_type1 allow_unsafe_interrupts=1\n"),
    ],
)
def test_interrupts_that_none_may_raise(root, path, text):
    """A sound host would be refused."""
    write(root / path, text)
    found = Findings()
    machine.interrupts("vfio-pci", False, found, str(root))
    assert (found.defects, found.notes) == ([], [])


def test_a_file_of_modprobe_that_another_hides(root):
    """What /etc has in place of a package's file counts, and nothing else."""
    write(root / "etc/modprobe.d/kvm.conf", "\n")
    write(root / "usr/lib/modprobe.d/kvm.conf", "options vfio_iommu_type1 allow_unsafe_interrupts=1\n")
    assert machine.unsafe(str(root)) == []


@pytest.mark.parametrize(("chip", "notes"), [("IR-PCI-MSIX-0000:01:00.0", 0), ("PCI-MSIX-0000:01:00.0", 1)])
def test_an_iommu_that_remaps_interrupts(root, chip, notes):
    """Why VFIO refuses a device is said before somebody finds allow_unsafe_interrupts."""
    write(root / "proc/interrupts", f"           CPU0\n 24:  1  {chip}   0-edge      nvme0q0\n")
    found = Findings()
    machine.interrupts("vfio-pci", True, found, str(root))
    assert len(found.notes) == notes


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
