# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of this machine, as the kernel shows them now: what each is, its device nodes, whether it may be given.

claims/host/allocation.py and processes.py know who has a GPU. nvidia-smi is not used, because it may be missing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping, Tuple, cast

from ...core.errors import BadInput
from . import architectures, health, isolation, nodes, pci_devices
from .nodes import DeviceNode
from .overrides import UUID, Overrides
from .paths import HERE, names_in, text_of

if TYPE_CHECKING:
    from .paths import Folders
    from .pci_devices import PciDevice

#: Vendors whose GPUs are shown and not given to containers.
OTHERS = {pci_devices.AMD: "amd", pci_devices.INTEL: "intel"}
#: Drivers that hold a device for virtual machines.
HELD_FOR_GUESTS = ("vfio-pci", "pci-stub")


#: Fields of the driver's `information` of a GPU; and {address without function: the GPU's last fault}.
Information = Dict[str, str]
Faults = Dict[str, Tuple[int, str]]


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    :param index: as nvidia-smi counts: by PCI address among those that the driver has. The operator may override it.
    :param nodes: nodes of this GPU alone, which are given with it (`Found.shared` has the others).
    :param drm_nodes: its graphics nodes, which are never given, and closed to all except its holder.
    :param unsupported: why it cannot be given to a container, or None.
    :param note: what else a person should know.
    """

    address: str
    uuid: str | None
    minor: int | None
    index: int | None
    vendor: str
    device_id: str | None
    model: str | None
    arch: str | None
    driver: str | None
    driver_version: str | None
    numa_node: int | None
    iommu_group: str | None
    nodes: list[DeviceNode]
    drm_nodes: list[DeviceNode]
    healthy: bool
    why_unhealthy: str | None
    unsupported: str | None
    note: str | None = None


@dataclass(frozen=True)
class Found:
    """All GPUs by address, and what they share.

    :param shared: nodes that every container with an NVIDIA GPU gets.
    :param caps: nodes of MIG and its management, which nobody gets.
    :param unsupported: why no GPU of this machine can be given to a container (each GPU says it too), or None.
    :param unused_overrides: names in the overrides that no GPU here has.
    """

    gpus: list[Gpu]
    shared: list[DeviceNode]
    caps: list[DeviceNode]
    driver_version: str | None
    unsupported: str | None
    unused_overrides: list[str]


def find(overrides: Mapping[str, Any] | None = None, paths: Folders = HERE) -> Found:
    """Return all GPUs of this machine, as they are now.

    :param overrides: {address, UUID, index or device id: {"arch": …, "index": …, "healthy": …}} (overrides.py).
    :raises BadInput: the overrides are wrong.
    """
    said = Overrides(overrides)
    devices = pci_devices.devices(paths)
    version = driver_version(paths)
    known = _driver_knows(paths)
    faults = health.faults(health.kernel_log(paths)) if known else {}
    switched = isolation.nvswitch(devices) if known else None
    gpus = _nvidia(devices, known, _Machine(version, faults, said, paths))
    gpus = [replace(gpu, unsupported=gpu.unsupported or switched) for gpu in gpus]
    gpus += [_other(device, paths) for device in devices if device.is_display and device.vendor in OTHERS]
    return Found(
        sorted(gpus, key=lambda gpu: gpu.address),
        nodes.nvidia_shared(paths) if version else [],
        nodes.nvidia_caps(paths),
        version,
        switched,
        said.unused,
    )


def driver_version(paths: Folders = HERE) -> str | None:
    """Return the version of the loaded NVIDIA kernel module, or None."""
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed …", "… Open Kernel Module for x86_64  550.54.15  …"
    match = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", text_of(paths.proc, _VERSION) or "")
    return match[1] if match else None


_VERSION = os.path.join("driver", "nvidia", "version")


def _driver_knows(paths: Folders) -> dict[str, Information]:
    """Return {address: fields of the driver's `information`} of each GPU that the driver has."""
    folder = os.path.join(paths.proc, "driver", "nvidia", "gpus")
    known = {}
    for address in names_in(folder):
        text = text_of(folder, address, "information")
        if text is not None:
            pairs = (line.partition(":") for line in text.splitlines())
            known[address.lower()] = {name.strip(): value.strip() for name, _colon, value in pairs}
    return known


@dataclass(frozen=True)
class _Machine:
    """The facts by which all NVIDIA GPUs of a machine are judged.

    :param version: of the driver; None if it is not loaded.
    :param said: the operator's overrides.
    """

    version: str | None
    faults: Faults
    said: Overrides
    paths: Folders


def _nvidia(devices: Iterable[PciDevice], known: Mapping[str, Information], machine: _Machine) -> list[Gpu]:
    on_bus = {device.address: device for device in devices if device.vendor == pci_devices.NVIDIA and device.is_display}
    counted = [address for address in sorted(known) if not isolation.excluded(known[address])]
    indices = {address: index for index, address in enumerate(counted)}
    gpus = [
        _nvidia_gpu(address, on_bus.get(address), known.get(address), indices.get(address), machine)
        for address in sorted({*on_bus, *known})
    ]
    for first in gpus:
        twins = [gpu.address for gpu in gpus if gpu.index is not None and gpu.index == first.index]
        if len(twins) > 1:
            raise BadInput(
                f"is the index of {', '.join(twins)}", f"GPU {first.index}", "give each its own by overrides"
            )
    return gpus


def _nvidia_gpu(
    address: str, device: PciDevice | None, information: Information | None, index: int | None, machine: _Machine
) -> Gpu:
    paths = machine.paths
    shown = (information or {}).get("GPU UUID", "")
    # the driver writes question marks until the GPU is used for the first time
    uuid = shown if UUID.fullmatch(shown) else None
    number = (information or {}).get("Device Minor", "")
    minor = int(number) if number.isdigit() else None
    operator = machine.said.of(
        address=address, uuid=uuid, index=index, device_id=device.device if device is not None else None
    )
    arch = operator.get("arch") or (architectures.of(device.device) if device else None)
    own = [nodes.nvidia_gpu(minor, paths)] if minor is not None else []
    sick = _sick(device, information, machine.faults.get(address.rpartition(".")[0]), operator)
    return Gpu(
        address=address,
        uuid=uuid,
        minor=minor,
        index=operator.get("index", index),
        vendor="nvidia",
        device_id=_device_id(device),
        model=(information or {}).get("Model"),
        arch=arch,
        driver=device.driver if device else None,
        driver_version=machine.version if information else None,
        numa_node=device.numa_node if device else None,
        iommu_group=device.iommu_group if device else None,
        nodes=own,
        drm_nodes=nodes.drm(device.folder, paths) if device else [],
        healthy=sick is None,
        why_unhealthy=sick,
        unsupported=_unsupported(device, information, minor, paths),
        note=_note(device, arch, information, uuid),
    )


def _device_id(device: PciDevice | None) -> str | None:
    return f"{device.vendor:04x}:{device.device:04x}" if device else None


def _sick(
    device: PciDevice | None,
    information: Information | None,
    fault: tuple[int, str] | None,
    operator: Mapping[str, Any],
) -> str | None:
    """Return why the GPU must not be given although it could be, or None. The operator's word comes first."""
    if "healthy" in operator:
        return None if operator["healthy"] else "the operator's overrides say that it is not healthy"
    if device is None:
        return "the driver knows it, and the PCI bus does not: it fell off the bus; power the machine off and on"
    if information is None and device.driver == "nvidia":
        return "driver nvidia could not set it up: see dmesg, lines of NVRM"
    if fault:
        number, line = fault
        return f"Xid {number} since the driver was loaded ({line}): reset or replace it, or override healthy: true"
    return None


def _unsupported(
    device: PciDevice | None, information: Information | None, minor: int | None, paths: Folders
) -> str | None:
    if device is not None and device.driver in HELD_FOR_GUESTS:
        return f"is bound to {device.driver}, for virtual machines: bind it to nvidia"
    if information is None:
        driver = cast("PciDevice", device).driver
        if driver is None:
            return "has no driver: load nvidia (modprobe nvidia)"
        if driver != "nvidia":
            return f"is bound to {driver}: bind it to nvidia"
        return "driver nvidia does not show it: see dmesg, lines of NVRM"
    if minor is None:
        return "driver nvidia gives it no minor: see dmesg, lines of NVRM"
    return isolation.excluded(information) or isolation.mig(minor, paths)


def _note(device: PciDevice | None, arch: str | None, information: Information | None, uuid: str | None) -> str | None:
    """Return what the operator may want to set right, or None. It does not keep the GPU from being given by address."""
    notes = []
    if device is not None and arch is None:
        notes.append(f"architecture of {_device_id(device)} is not known: set it by overrides (arch)")
    if information is not None and uuid is None:
        notes.append("has no UUID before its first use: run nvidia-smi once, or nvidia-persistenced")
    return "; ".join(notes) or None


def _other(device: PciDevice, paths: Folders) -> Gpu:
    """Return a GPU of AMD or Intel, which is shown and not given."""
    vendor = OTHERS[device.vendor]
    own = nodes.drm(device.folder, paths)
    if device.driver == "amdgpu":
        own += nodes.kfd(paths)
    return Gpu(
        address=device.address,
        uuid=None,
        minor=None,
        index=None,
        vendor=vendor,
        device_id=_device_id(device),
        model=None,
        arch=None,
        driver=device.driver,
        driver_version=None,
        numa_node=device.numa_node,
        iommu_group=device.iommu_group,
        nodes=[],
        drm_nodes=own,
        healthy=True,
        why_unhealthy=None,
        unsupported="is shown only: containers get GPUs of NVIDIA",
    )
