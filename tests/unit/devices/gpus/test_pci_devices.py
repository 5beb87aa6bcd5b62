# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which devices of a machine are read, what its folders and nodes are, and what is refused of it, at the edges.

Tests devices/gpus/isolation.py, devices/gpus/nodes.py, devices/gpus/paths.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import (
    isolation,
    libraries,
    nodes,
    paths,
    pci_devices,
)


def test_this_machines_own_folders():
    """Lost: all GPUs of a machine that has some."""
    assert (paths.HERE.proc, paths.HERE.sys, paths.HERE.dev, paths.HERE.run) == ("/proc", "/sys", "/dev", "/run")


def test_a_text_of_odd_bytes_is_read(tmp_path):
    """Lost: all looks at GPUs, for one process whose name is no UTF-8 text."""
    (tmp_path / "comm").write_bytes(b" a\xff\n")
    assert paths.text_of(str(tmp_path), "comm") == "a\ufffd"


def test_a_device_that_is_no_gpu_or_just_goes_hides_none(bare):
    """Lost: the GPUs behind a bridge, a card of another maker, or a card that is just being taken out."""
    bare.pci("0000:00:01.0", 0x1AF4, 0x1050)
    bare.pci("0000:00:02.0", 0x8086, 0x4680, 0x060000)
    (bare.pci("0000:00:03.0", 0x10DE, 0x1091) / "class").unlink()
    (bare.pci("0000:00:04.0", 0x10DE, 0x1091) / "device").unlink()
    (bare.pci("0000:00:05.0", 0x10DE, 0x1091) / "vendor").unlink()
    folder = bare.pci("0000:0A:00.0", 0x10DE, 0x1091, numa_node=0)
    (folder / "iommu_group").symlink_to("../../../../kernel/iommu_groups/17")
    (bare.pci("0000:0B:00.0", 0x8086, 0x4680, 0x030000) / "numa_node").unlink()
    found = {device.address: device for device in pci_devices.devices(bare.paths)}
    assert list(found) == ["0000:0a:00.0", "0000:0b:00.0"]
    gpu, other = found.values()
    assert (gpu.numa_node, gpu.iommu_group, gpu.driver) == (0, "17", None)
    assert (other.numa_node, other.iommu_group) == (None, None)
    assert [one.healthy for one in bare.find().gpus] == [True, True]


def test_all_that_an_operator_should_set_right_is_said(four):
    """Lost: the second of two things to set right."""
    four.pci("0000:0b:00.0", 0x10DE, 0x9999, driver="nvidia")
    four.serve("0000:0b:00.0", 7, "GPU-????????-????-????-????-????????????")
    first, second = four.gpu("0000:0b:00.0").note.split("; ")
    assert "architecture of 10de:9999" in first
    assert second.startswith("has no UUID")


@pytest.mark.parametrize(
    ("vendor", "device", "driver", "is_one"),
    [
        (0x10DE, 0x1AF1, None, True),
        (0x10DE, 0x22A3, None, True),
        (0x10DE, 0x1AF2, None, False),
        (0x15B3, 0x1AF1, None, False),
        (0x10DE, 0x1AC2, "nvidia-nvswitch", True),
    ],
)
def test_a_switch_without_its_driver_is_one(vendor, device, driver, is_one):
    """Lost: containers whose programs find a GPU that does not work, on a machine whose switches have no driver yet."""
    one = SimpleNamespace(address="0000:c0:00.0", vendor=vendor, device=device, driver=driver)
    assert (isolation.nvswitch([one]) is not None) is is_one


def test_what_lies_behind_product_data_is_none(tmp_path):
    """Lost: all GPUs of a machine by what a card's firmware has behind its product data."""
    card = SimpleNamespace(address="0000:c0:00.0", vendor=0x15B3, device=0x1021, driver=None, folder=str(tmp_path))
    for before, manages in ((32 * 1024 - 6, True), (32 * 1024, False)):
        (tmp_path / "vpd").write_bytes(b"x" * before + b"SW_MNG")
        assert (isolation.nvswitch([card]) is not None) is manages


@pytest.mark.parametrize("word", ["GPU Excluded", "GPU Blacklisted"])
def test_drivers_of_any_age_say_what_they_leave_alone(word):
    """Lost: a GPU that was left out on purpose, to a container that cannot use it."""
    assert isolation.excluded({word: "Yes"})
    assert isolation.excluded({word: "No"}) is None


def test_a_node_of_a_driver_that_is_not_loaded_names_it(bare):
    """Lost: which driver to load, and whether a number is a GPU's."""
    bare.node("nvidia-caps/nvidia-cap1", 240, 1)
    (cap,) = nodes.nvidia_caps(bare.paths)
    assert cap.why_absent == "driver nvidia-caps is not loaded: run modprobe nvidia-caps"
    assert nodes.kfd(bare.paths) == []
    assert nodes.NO_GPU < nodes.NVIDIA_MODESET < nodes.NVIDIACTL < 256


def test_all_libraries_that_do_not_fit_are_said(monkeypatch):
    """Lost: the second library to be replaced; or an attach, for a disk that answers to nobody."""
    asked = []
    found = [dict(name=name, path=f"/lib/{name}", version="1.2") for name in ("a", "b")]
    monkeypatch.setattr(libraries, "inside", lambda root, what, deadline: asked.append(deadline.seconds) or found)
    with pytest.raises(Refused, match=r"driver 3\.4: /lib/a is 1\.2, /lib/b is 1\.2: install"):
        libraries.check("/root", "3.4")
    assert 1 <= asked[0] <= 60
