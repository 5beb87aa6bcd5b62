# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices as sysfs shows them. Other files know vendors' names, groups, and who uses a device."""

from __future__ import annotations

import contextlib
import os
import re
import select
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Iterable, Sequence

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError
from .detached_work import detached, sleeps_in_kernel

if TYPE_CHECKING:
    from .paths import Paths

ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])")
#: Drivers that only reserve a device for a guest.
STUBS = ("vfio-pci", "pci-stub")
#: Offset of the header type in a device's configuration space. Without its multi-function bit 0 is no bridge (PCI 3.0,
#: 6.2.1).
HEADER_TYPE = 0x0E
#: Where the kernel says why it refused something.
SEE = "see the kernel's log (dmesg)"
#: Seconds without an answer after which it is checked whether the reader is kept waiting; and for all answers together.
SILENCE = 0.2
READ_LIMIT = 10.0
#: Base class of bridges (also those to ISA and of the host), and with a subclass of bridges between PCI buses.
BRIDGES = "06"
PCI_BRIDGE = "0604"


@dataclass(frozen=True)
class Device:
    """What the kernel knows of a device now."""

    address: str
    vendor_id: str
    product_id: str
    subsystem_vendor_id: str
    subsystem_id: str
    #: Base class, subclass and programming interface: six hexadecimal digits.
    class_code: str
    revision: str
    driver: str | None
    override: str | None
    group: int | None
    numa_node: int | None
    #: type-PCI, type-PF or type-VF, as Nova names them.
    kind: str
    #: Address of a virtual function's physical function.
    parent: str | None
    #: Number of a physical function's enabled virtual functions.
    vfs: int
    bridge: bool
    boot_display: bool
    modalias: str
    #: Whether it is leaving its driver, or coming to one. The kernel answers no further question until then.
    changing: bool = False

    @property
    def slot(self) -> str:
        """The address without its function, which all functions of one card share."""
        return self.address.rpartition(".")[0]

    @property
    def of_the_host(self) -> bool:
        """Return whether the device is a bridge or part of the chipset, which no guest can get."""
        return self.bridge or self.class_code.startswith(BRIDGES)

    @property
    def ids(self) -> str:
        return f"{self.vendor_id}:{self.product_id}"


def address_of(text: str) -> str:
    """Return a full address as the kernel writes it, also of "85:00.0"; raise BadInput for anything else."""
    found = ADDRESS.fullmatch(text.strip().lower())
    if not found:
        raise BadInput("is no PCI address", text, "write it as 0000:85:00.0")
    return f"{found[1] or '0000'}:{found[2]}:{found[3]}.{found[4]}"


def devices(paths: Paths) -> dict[str, Device]:
    """Return {address: Device} of all devices, by address. A device that is removed meanwhile is left out."""
    folder = os.path.join(paths.sys, "bus/pci/devices")
    try:
        addresses = sorted(os.listdir(folder))
    except FileNotFoundError as error:
        raise HeteroError("no PCI bus here", folder, "run this on the machine that holds the devices") from error
    return _looked(addresses, paths)


def look(address: str, paths: Paths) -> Device | None:
    """Return the device at an address now, or None."""
    return _looked([address], paths).get(address)


def _looked(addresses: Iterable[str], paths: Paths) -> dict[str, Device]:
    found = {}
    for address in addresses:
        try:
            found[address] = _read(address, paths)
        except FileNotFoundError:
            continue  # it was removed meanwhile
    # While a device is bound or unbound it shows no driver, and the kernel keeps readers of some files waiting.
    free = [address for address, device in found.items() if device.driver is None]
    changing = set(_locked([paths.device(address, "driver_override") for address in free], paths))
    for address, device in list(found.items()):
        if paths.device(address, "driver_override") in changing:
            found[address] = replace(device, changing=True)
            continue
        try:
            override, vfs = override_of(address, paths), _number(paths.device(address, "sriov_numvfs"))
        except FileNotFoundError:
            del found[address]
            continue
        found[address] = replace(device, override=override, vfs=vfs or 0)
    return found


def _locked(files: Iterable[str], paths: Paths) -> list[str]:
    """Return those of the files that the kernel lets nobody read now."""
    files, locked = list(files), []
    while files:

        def work(tell: Callable[[bytes], object], files: Sequence[str] = tuple(files)) -> None:
            for path in files:
                with contextlib.suppress(OSError):  # the next reader reports it
                    text(path)
                tell(b".")

        child, answers = detached(work)
        try:
            done = _answered(child, answers, len(files), paths)
        finally:
            os.close(answers)
        if done == len(files):
            os.waitpid(child, 0)
            return locked
        locked.append(files[done])
        del files[: done + 1]
    return locked


def _answered(child: int, answers: int, expected: int, paths: Paths) -> int:
    """Return how many answers came before the kernel kept the child waiting."""
    count, deadline = 0, Deadline(READ_LIMIT)
    while count < expected:
        if select.select([answers], [], [], SILENCE)[0]:
            said = len(os.read(answers, expected))
            if not said:
                break
            count += said
        elif sleeps_in_kernel(child, paths.proc) or deadline.passed:
            break
    return count


def _read(address: str, paths: Paths) -> Device:
    def hexadecimal(name: str) -> str:
        return text(paths.device(address, name))[2:]  # 0x10de

    group = _link(paths.device(address, "iommu_group"))
    node = _number(paths.device(address, "numa_node"))
    parent = _link(paths.device(address, "physfn"))
    kind = "type-PCI"
    if parent:
        kind = "type-VF"
    elif _number(paths.device(address, "sriov_totalvfs")):
        kind = "type-PF"
    code = hexadecimal("class")
    return Device(
        address=address,
        vendor_id=hexadecimal("vendor"),
        product_id=hexadecimal("device"),
        subsystem_vendor_id=hexadecimal("subsystem_vendor"),
        subsystem_id=hexadecimal("subsystem_device"),
        class_code=code,
        revision=hexadecimal("revision"),
        driver=driver_of(address, paths),
        override=None,
        group=None if group is None else int(group),
        numa_node=None if node is None or node < 0 else node,
        kind=kind,
        parent=parent,
        vfs=0,
        bridge=_bridge(address, code, paths),
        boot_display=_number(paths.device(address, "boot_vga")) == 1,
        modalias=text(paths.device(address, "modalias")),
    )


def driver_of(address: str, paths: Paths) -> str | None:
    """Return the name of the driver to which a device is bound now, or None."""
    return _link(paths.device(address, "driver"))


def override_of(address: str, paths: Paths) -> str | None:
    """Return the only driver that may take the device, or None if any may. The kernel may keep the reader waiting."""
    found = text(paths.device(address, "driver_override"))
    return None if found in ("", "(null)") else found


def text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()


def put(path: str, value: str) -> None:
    """Write to an attribute, in one write. An OSError is the kernel's answer."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def _link(path: str) -> str | None:
    try:
        return os.path.basename(os.readlink(path))
    except FileNotFoundError:
        return None


def _number(path: str) -> int | None:
    try:
        return int(text(path))
    except FileNotFoundError:
        return None


def _bridge(address: str, code: str, paths: Paths) -> bool:
    with open(paths.device(address, "config"), "rb") as file:
        header = file.read(HEADER_TYPE + 1)
    kind = header[HEADER_TYPE] & 0x7F if len(header) > HEADER_TYPE else 0x7F
    # a device that sleeps too deeply, or is no longer in its slot, answers with ones only
    return code.startswith(PCI_BRIDGE) if kind == 0x7F else kind != 0
