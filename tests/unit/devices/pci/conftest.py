# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in a folder: PCI devices as sysfs shows them, and a kernel that does to them what is written to sysfs."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import sysfs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.paths import below

STUBS = ("vfio-pci", "pci-stub")


class Host:
    """Lays devices, and plays the kernel for writes to their attributes."""

    def __init__(self, root):
        self.root = root
        self.paths = below(str(root))._replace(proc="/proc")
        self.native = {}
        self.fails = {}
        self.before_write = []
        self.written = []
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "run").mkdir()
        for driver in STUBS:
            self._driver(driver)

    def own_proc(self, mountinfo="", swaps="", route="", route6=""):
        """A /proc of its own, for what is read of mounts and routes."""
        proc = self.root / "proc"
        (proc / "self").mkdir(parents=True)
        (proc / "net").mkdir()
        (proc / "self/mountinfo").write_text(mountinfo)
        (proc / "swaps").write_text("Filename Type Size Used Priority\n" + swaps)
        (proc / "net/route").write_text(
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n" + route
        )
        (proc / "net/ipv6_route").write_text(route6)
        return self.paths._replace(proc=str(proc))

    def _driver(self, name):
        (self.root / "sys/bus/pci/drivers" / name).mkdir(parents=True, exist_ok=True)

    def add(self, address, ids="1234:1111", driver=None, group=None, device_class="038000", numa=-1, header=0, **files):
        """A device; its host's driver is the one that it has here."""
        vendor, product = ids.split(":")
        folder = self.folder(address)
        folder.mkdir(parents=True)
        (self.root / "sys/bus/pci/devices" / address).symlink_to(folder)
        content = dict(
            vendor=f"0x{vendor}",
            device=f"0x{product}",
            subsystem_vendor="0x1af4",
            subsystem_device="0x1100",
            revision="0xa1",
            numa_node=str(numa),
            modalias=f"pci:v0000{vendor}d0000{product}",
            driver_override="(null)",
            **{"class": f"0x{device_class}"},
        )
        for name, text in {**content, **files}.items():
            (folder / name).write_text(f"{text}\n")
        (folder / "config").write_bytes(bytes(14) + bytes([header]) + bytes(49))
        if group is not None:
            (folder / "iommu_group").symlink_to(f"/kernel/iommu_groups/{group}")
        self.native[address] = driver
        if driver:
            self.bind(address, driver)
        return folder

    def folder(self, address):
        return self.root / "sys/devices/pci0000:00" / address

    def bind(self, address, driver):
        self._driver(driver)
        (self.folder(address) / "driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)

    def driver(self, address):
        return sysfs.driver_of(address, self.paths)

    def override(self, address):
        return sysfs.override_of(address, self.paths)

    def put(self, path, value):
        """What the kernel does with a write; it runs in whatever process writes."""
        for look in self.before_write:
            look(path, value)
        with open(self.root / "writes", "a", encoding="utf-8") as file:
            file.write(f"{os.path.relpath(path, self.root)} {value.strip()}\n")
        folder, name = os.path.split(path)
        fault = self.fails.get((name, value.strip()))
        if callable(fault):
            fault()
        elif fault:
            raise OSError(fault, os.strerror(fault))
        if name == "driver_override":
            (self.root / "sys").joinpath(path).write_text(f"{value.strip() or '(null)'}\n")
        elif name == "unbind":
            if self.driver(value) != os.path.basename(folder):
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            (self.folder(value) / "driver").unlink()
        elif name == "bind":
            self.bind(value, os.path.basename(folder))
        elif name == "drivers_probe":
            driver = self.override(value) or self.native[value]
            if driver and self.driver(value) is None:
                self.bind(value, driver)
        else:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    @property
    def writes(self):
        path = self.root / "writes"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host without devices; programs that would change this machine's modules do nothing."""
    made = Host(tmp_path)
    monkeypatch.setattr(sysfs, "put", made.put)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("modprobe", "udevadm", "systemctl"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    return made


@pytest.fixture
def card(host):
    """The three functions of one card, in one IOMMU group, each on a driver of its own."""
    host.add("0000:01:00.0", "10de:11bf", "nouveau", group=7, device_class="030000")
    host.add("0000:01:00.1", "10de:0e0a", "snd_hda_intel", group=7, device_class="040300")
    host.add("0000:01:00.2", "1b36:000d", "xhci_hcd", group=7, device_class="0c0330")
    return host
