# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest made from an image of the kind that boards boot: its disk, kernel and initrd in a folder of its own, and its
domain; what of that is missing later; and its end.

It boots its kernel directly, so that nothing of the image need know of boot loaders, and gets its address on the
kernel's command line, as boards do. The disk is a file system without partitions, made from a root that has its keys
in it already: nothing is ever mounted. A folder that is half made is made anew.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Tuple
from xml.etree import ElementTree

from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...files.removal import remove_tree
from ...files.whole_file import write_whole
from ...roots import machine_identity
from .. import pinning
from . import hostdev
from .domain import Libvirt

if TYPE_CHECKING:
    from .domain import Domain

#: Names of the UUIDs of domains, from those of their claims (RFC 4122, version 5); any will do, as long as it stays.
NAMESPACE = uuid.UUID("5f1d4f6e-6a4c-5d0e-9b57-2f6d0c1f9a10")
#: Seconds for the copy of a root, and for making a disk of it.
COPY_TIME = 900.0
#: Room that a disk has beside what is in it, where the flavor names no size (MiB).
ROOM = 256
KVM, QEMU = "kvm", "qemu"
#: Emulated, a guest needs an instruction for random numbers, or its sshd waits for them (facts of the lab's boards).
EMULATED = '<cpu mode="custom" match="exact" check="none"><model fallback="allow">qemu64</model>{feature}</cpu>'
RDRAND = '<feature policy="require" name="rdrand" />'
#: Its devices, but for those of PCI. No display: its console is a file.
PARTS = (
    '<disk type="file" device="disk"><driver name="qemu" type="raw" discard="unmap" /><source file="{disk}" />'
    '<target dev="vda" bus="virtio" /></disk>',
    '<interface type="bridge"><source bridge="{bridge}" /><mac address="{mac}" /><target dev="{port}" />'
    '<model type="virtio" /></interface>',
    '<serial type="file"><source path="{console}" append="on" /><target port="0" /></serial>',
    '<controller type="usb" model="none" />',
    '<video><model type="none" /></video>',
    '<memballoon model="none" />',
)
#: Its domain as it was made, in its folder; written last.
DESCRIPTION = "domain.xml"
CONSOLE = "console.log"
DISK = "disk.raw"


@dataclass(frozen=True)
class Spec:
    """What a guest is to be.

    :param made: when it was claimed: one that is claimed again is another domain.
    :param image: an images.store.Image; not needed for one that is there.
    :param devices: addresses of the PCI devices it has.
    :param domain_type: KVM or QEMU.
    """

    name: str
    made: float
    folder: str
    image: Any
    ssh_public_key: str
    bridge: str
    address: str
    netmask: str
    gateway: str | None
    memory_mb: int
    vcpus: int
    local_gb: int
    devices: Tuple[str, ...]
    domain_type: str

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(NAMESPACE, f"{self.name} {self.made!r}"))

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)


def domain_type(libvirt: Libvirt, configured: str | None) -> str:
    """What runs guests here: what the configuration says, else the processor's own way where libvirt has that."""
    there = libvirt.domain_types()
    wanted = configured or (KVM if KVM in there else QEMU)
    if wanted not in there:
        what = f"runs no guests of type {wanted}, only {', '.join(there) or 'none'}"
        remedy = "switch virtualization on in the firmware, or set kvm_guests_domain_type: qemu (emulated, slow)"
        raise HeteroError(what, "libvirt", remedy)
    return wanted


def create(spec: Spec, libvirt: Libvirt, deadline: Deadline) -> str:
    """Make a guest's folder and its domain, which must not run; returns the public half of its ssh host key.

    The domain comes last: without one libvirt sees no guest.
    """
    remove(spec.name, spec.folder, libvirt, deadline)
    os.makedirs(os.path.dirname(spec.folder), mode=0o711, exist_ok=True)
    os.mkdir(spec.folder, 0o700)
    root = spec.file("root")
    os.mkdir(root, 0o700)
    _copy(f"{spec.image.root}/.", f"{root}/", spec, deadline)
    for name in ("kernel", "initrd"):
        if getattr(spec.image, name):
            _copy(getattr(spec.image, name), spec.file(name), spec, deadline)
    os.chmod(root, 0o755)  # the guest's / has its mode
    machine_identity.settle(root, spec.name)
    machine_identity.put_key(root, spec.ssh_public_key)
    host_key = machine_identity.put_host_key(root, spec.name, spec.folder)
    _disk(spec, root, deadline)
    remove_tree(root, deadline)
    # Its description says that it is whole: nothing of it may be lost by a power cut after that.
    files = [path for path in map(spec.file, (DISK, "kernel", "initrd")) if os.path.exists(path)]
    command(["sync", *files], spec.name, "check the disk", timeout=min(COPY_TIME, max(1.0, deadline.left)))
    with open(os.open(spec.file(CONSOLE), os.O_WRONLY | os.O_CREAT, 0o600), "wb"):
        pass  # QEMU's user may not make it
    write_whole(spec.file(DESCRIPTION), xml(spec), 0o600)
    # QEMU's user passes through, and reads nothing but what libvirt makes its own
    os.chmod(spec.folder, 0o711)
    libvirt.define(xml(spec))
    return host_key


def is_whole(folder: str) -> bool:
    """Whether a guest was made here to its end; its domain may have been taken away since."""
    return os.path.exists(os.path.join(folder, DESCRIPTION))


def _copy(source: str, target: str, spec: Spec, deadline: Deadline) -> None:
    argv = ["cp", "-a", "--reflink=auto", source, target]
    command(argv, spec.name, "check the space there", timeout=min(COPY_TIME, max(1.0, deadline.left)))


def _disk(spec: Spec, root: str, deadline: Deadline) -> None:
    """A sparse file with ext4 in it, of the flavor's size; nobody else's to read from its first byte on."""
    size = f"{spec.local_gb}G" if spec.local_gb else f"{_used(root) + ROOM}M"
    path = spec.file(DISK)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    argv = ["mke2fs", "-q", "-t", "ext4", "-m", "0", "-L", "root", "-d", root, path, size]
    remedy = "raise local_gb of its flavor, or check the space there"
    command(argv, f"disk of {spec.name}", remedy, timeout=min(COPY_TIME, max(1.0, deadline.left)))


def _used(root: str) -> int:
    """MiB that a root takes, and what its files' names and numbers take."""
    said = command(["du", "--apparent-size", "--block-size=4K", "--summarize", root], root)
    return int(said.split()[0]) // 256 * 5 // 4


def kernel_words(spec: Spec, cmdline: str) -> str:
    """The kernel's command line (its Documentation/admin-guide/nfs/nfsroot.rst says how ip= is written)."""
    ip = f"ip={spec.address}::{spec.gateway or ''}:{spec.netmask}:{spec.name}:eth0:off"
    return " ".join(filter(None, ["root=/dev/vda rw rootfstype=ext4 console=ttyS0 net.ifnames=0", ip, cmdline]))


def xml(spec: Spec) -> str:
    """libvirt's description of a guest, as text."""
    domain = ElementTree.Element("domain", type=spec.domain_type)
    for name, text in (("name", spec.name), ("uuid", spec.uuid)):
        ElementTree.SubElement(domain, name).text = text
    ElementTree.SubElement(domain, "memory", unit="MiB").text = str(spec.memory_mb)
    ElementTree.SubElement(domain, "vcpu").text = str(spec.vcpus)
    system = ElementTree.SubElement(domain, "os")
    ElementTree.SubElement(system, "type", arch=spec.image.arch, machine="q35").text = "hvm"
    ElementTree.SubElement(system, "kernel").text = spec.file("kernel")
    if spec.image.initrd:
        ElementTree.SubElement(system, "initrd").text = spec.file("initrd")
    ElementTree.SubElement(system, "cmdline").text = kernel_words(spec, spec.image.cmdline)
    ElementTree.SubElement(ElementTree.SubElement(domain, "features"), "acpi")
    domain.append(_processor(spec))
    devices = ElementTree.SubElement(domain, "devices")
    for text in PARTS:
        text = text.format(
            disk=spec.file(DISK),
            bridge=spec.bridge,
            mac=pinning.mac(spec.address),
            port=pinning.port("kvm", spec.address),
            console=spec.file(CONSOLE),
        )
        devices.append(ElementTree.fromstring(text))
    devices.extend(hostdev.element(address) for address in spec.devices)
    return ElementTree.tostring(domain, encoding="unicode")


def _processor(spec: Spec) -> ElementTree.Element:
    if spec.domain_type == KVM:
        return ElementTree.Element("cpu", mode="host-passthrough")
    return ElementTree.fromstring(EMULATED.format(feature=RDRAND if spec.image.arch == "x86_64" else ""))


def missing(spec: Spec, libvirt: Libvirt) -> list[str]:
    """What of a guest that was made is not as its claim says, in words: its domain, the port and the devices of its
    next start."""
    if uuid_of(spec.name, libvirt) is None:
        return ["domain"]
    domain = libvirt.domain(spec.name).xml(live=False)
    has = hostdev.given(domain)
    found = ["port on the bridge"] if _pin(domain, spec) else []
    return found + [f"device {address}" for address in sorted(set(has) ^ set(spec.devices))]


def _pin(domain: ElementTree.Element, spec: Spec) -> bool:
    """Give a domain's interface the MAC and the port that its address is pinned to; whether it had others."""
    interface = domain.find("devices/interface")
    if interface is None:
        return False
    wanted = {"mac": {"address": pinning.mac(spec.address)}, "target": {"dev": pinning.port("kvm", spec.address)}}
    had = {name: dict(getattr(interface.find(name), "attrib", {})) for name in wanted}
    if had == wanted:
        return False
    for name, attributes in wanted.items():
        for element in interface.findall(name):
            interface.remove(element)
        ElementTree.SubElement(interface, name, attributes)
    return True


def put_back(spec: Spec, libvirt: Libvirt) -> None:
    """Have the domain, and its next start read the port and the devices of its claim and no others."""
    if uuid_of(spec.name, libvirt) is None:
        with open(spec.file(DESCRIPTION), encoding="utf-8") as file:
            libvirt.define(file.read())
    domain = libvirt.domain(spec.name)
    description = domain.xml(live=False)
    if _pin(description, spec):
        libvirt.define(ElementTree.tostring(description, encoding="unicode"))
    has = hostdev.given(domain.xml(live=False))
    for address in spec.devices:
        if address not in has:
            domain.attach(hostdev.xml(address), live=False)
    for address, given in has.items():
        if address not in spec.devices:
            domain.detach(hostdev.xml(address, given.managed), live=False)


def live_devices(domain: Domain) -> set[str]:
    """PCI addresses that the guest which runs has."""
    return set(hostdev.given(domain.xml(live=True)))


def uuid_of(name: str, libvirt: Libvirt) -> str | None:
    """The UUID of the domain of that name; None where there is none."""
    if name not in libvirt.names():
        return None
    return libvirt.domain(name).xml(live=False).findtext("uuid")


def remove(name: str, folder: str, libvirt: Libvirt, deadline: Deadline) -> None:
    """End a guest and take its domain and its folder away, whatever is left of it; nothing is left afterwards."""
    domain = libvirt.domain(name)
    if domain.defined:
        domain.stop()
        domain.undefine()
        if domain.defined:
            raise HeteroError("is still there, although it was undefined", domain.thing, "see: virsh list --all")
    # First, so that a killed removal leaves no guest that could be taken for a whole one.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, DESCRIPTION))
    remove_tree(folder, deadline)
