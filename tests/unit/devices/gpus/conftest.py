# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with GPUs, as its kernel would show it: real files, links and device nodes in a temporary folder."""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.paths import Paths

#: Four GPUs: PCI address, device id, minor, NUMA node. Their minors are not in the order of their addresses.
FOUR = (
    ("0000:05:00.0", 0x1091, 2, 0),
    ("0000:06:00.0", 0x1094, 0, 0),
    ("0000:89:00.0", 0x06D1, 3, 1),
    ("0000:8a:00.0", 0x1091, 1, -1),
)
DRIVER = "390.157"


def uuid_of(minor):
    return f"GPU-0000000{minor}-1111-2222-3333-444444444444"


class Machine:
    def __init__(self, root):
        self.root = root
        self.paths = Paths.below(str(root))
        self.nvidia = root / "proc" / "driver" / "nvidia"
        self.majors = {"mem": 1, "nvidia-frontend": 195, "nvidia-uvm": 238}
        for folder in ("proc", "dev", "sys/bus/pci/devices"):
            (root / folder).mkdir(parents=True)
        (root / "dev" / "kmsg").write_text("6,1,0,-;Linux version 6.1.0\n")
        self.write_majors()

    def find(self, overrides=None):
        return discovery.find(overrides, self.paths)

    def gpu(self, address="0000:05:00.0", overrides=None):
        (found,) = (gpu for gpu in self.find(overrides).gpus if gpu.address == address)
        return found

    def write_majors(self, **majors):
        self.majors.update({name.replace("_", "-"): major for name, major in majors.items()})
        lines = [f"{major:3d} {name}\n" for name, major in self.majors.items() if major is not None]
        (self.root / "proc" / "devices").write_text(
            "Character devices:\n" + "".join(lines) + "\nBlock devices:\n  7 nvidia-uvm\n259 blkext\n"
        )

    def pci(self, address, vendor, device, pci_class=0x030200, driver=None, numa_node=-1):
        folder = self.root / "sys" / "bus" / "pci" / "devices" / address
        folder.mkdir()
        texts = dict(vendor=f"0x{vendor:04x}", device=f"0x{device:04x}", numa_node=numa_node)
        texts["class"] = f"0x{pci_class:06x}"
        for name, text in texts.items():
            (folder / name).write_text(f"{text}\n")
        if driver:
            (folder / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
        return folder

    def load(self, version=DRIVER, kind="x86_64 Kernel Module"):
        (self.nvidia / "gpus").mkdir(parents=True, exist_ok=True)
        text = f"NVRM version: NVIDIA UNIX {kind}  {version}  Wed Jul 13 16:03:43 UTC 2022"
        (self.nvidia / "version").write_text(f"{text}\nGCC version:  gcc version 12.2.0\n")

    def serve(self, address, minor, uuid=None, **fields):
        """What the driver says of a GPU that it has."""
        folder = self.nvidia / "gpus" / address
        folder.mkdir(parents=True, exist_ok=True)
        lines = {
            "Model": "Tesla M2090",
            "IRQ": 42,
            "GPU UUID": uuid or uuid_of(minor),
            "Video BIOS": "70.10.46.00.05",
            "Bus Location": address,
            "Device Minor": minor,
            **fields,
        }
        (folder / "information").write_text("".join(f"{name}: \t\t {value}\n" for name, value in lines.items()))

    def node(self, name, major, minor, mode=0o666):
        path = self.root / "dev" / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        os.mknod(path, stat.S_IFCHR | mode, os.makedev(major, minor))
        path.chmod(mode)

    def nodes(self):
        for _address, _device, minor, _numa in FOUR:
            self.node(f"nvidia{minor}", 195, minor)
        self.node("nvidiactl", 195, 255)
        self.node("nvidia-modeset", 195, 254)
        self.node("nvidia-uvm", 238, 0)
        self.node("nvidia-uvm-tools", 238, 1)

    def log(self, *lines):
        with (self.root / "dev" / "kmsg").open("a") as file:
            file.writelines(f"4,{number},5000000,-;{line}\n" for number, line in enumerate(lines, 2))


@pytest.fixture
def bare(tmp_path):
    """A machine without any GPU."""
    return Machine(tmp_path / "machine")


@pytest.fixture
def four(bare):
    """A machine with four GPUs of architecture fermi, its driver and all its nodes."""
    bare.load()
    for address, device, minor, numa_node in FOUR:
        bare.pci(address, 0x10DE, device, driver="nvidia", numa_node=numa_node)
        bare.serve(address, minor)
    bare.nodes()
    return bare
