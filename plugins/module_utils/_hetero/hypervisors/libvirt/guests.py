# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests made from images of the kind that boards boot: disk, kernel and initrd in a folder, and a domain; later, what
of that is missing; and their end.

libvirt boots the guest's kernel directly, so that images need no boot loader, and the guest gets its address on the
kernel's command line, as boards do. The disk is a file system without partitions, made from a root with all keys in it,
so that nothing is ever mounted. A half-made folder is made anew.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Tuple
from xml.etree import ElementTree

from ...core.command import command
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...files.file_system import must_hold
from ...files.plain_file import read_at
from ...files.removal import remove_tree
from ...files.whole_file import write_whole
from ...roots.new_machine import make_own
from .. import pinning
from . import hostdev, own_disk
from .domain import Libvirt
from .guest_folder import CONSOLE, DESCRIPTION, DISK, MOST, must_have

if TYPE_CHECKING:
    from .domain import Domain

#: Namespace of the UUIDs that domains get from their claims (RFC 4122, version 5). It must never change.
NAMESPACE = uuid.UUID("5f1d4f6e-6a4c-5d0e-9b57-2f6d0c1f9a10")
#: Seconds to copy a root, and to make a disk of it.
COPY_TIME = 900.0
#: MiB that a disk has beside its contents if the flavor names no size.
ROOM = 256
KVM, QEMU = "kvm", "qemu"
#: Makes a disk.
MAKE = ["mke2fs", "-q", "-t", "ext4", "-m", "0", "-L", "root"]
#: An emulated guest's processor. It needs an instruction for random numbers, or its sshd waits for them.
EMULATED = '<cpu mode="custom" match="exact" check="none"><model fallback="allow">qemu64</model>{feature}</cpu>'
RDRAND = '<feature policy="require" name="rdrand" />'
#: Its devices except PCI devices. It has no display: its console is a file.
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


@dataclass(frozen=True)
class Spec:
    """What a guest is to be.

    :param made: time of its claim: if it is claimed again, it is another domain.
    :param image: images.store.Image; not needed for a guest that exists.
    :param devices: addresses of its PCI devices.
    :param others: addresses of devices that others have, or run with. Its next start stays as it is with those that
        nobody has.
    :param domain_type: KVM or QEMU.
    :param user_data: what cloud-init gets.
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
    user_data: str | None = None
    others: Tuple[str, ...] = ()

    @property
    def uuid(self) -> str:
        return uuid_for(self.name, self.made)

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)


def uuid_for(name: str, made: float) -> str:
    """Return the UUID of the guest of a claim.

    :param made: time of the claim.
    """
    return str(uuid.uuid5(NAMESPACE, f"{name} {made!r}"))


def domain_type(libvirt: Libvirt, configured: str | None) -> str:
    """Return the type of guests here: the configured one, else KVM if libvirt has it, else QEMU."""
    there = libvirt.domain_types()
    wanted = configured or (KVM if KVM in there else QEMU)
    if wanted not in there:
        what = f"runs no guests of type {wanted}, only {', '.join(there) or 'none'}"
        remedy = "switch virtualization on in the firmware, or set kvm_guests_domain_type: qemu (emulated, slow)"
        raise HeteroError(what, "libvirt", remedy)
    return wanted


def create(spec: Spec, libvirt: Libvirt, deadline: Deadline) -> str:
    """Make a guest's folder and its domain, which must not run; return its public ssh host key.

    The domain comes last: without one libvirt sees no guest.
    """
    remove(spec.name, spec.folder, libvirt, deadline)
    os.makedirs(os.path.dirname(spec.folder), mode=0o711, exist_ok=True)
    os.mkdir(spec.folder, 0o700)
    uuid = own_disk.begin(spec.folder, spec.uuid)
    root = spec.file("root")
    os.mkdir(root, 0o700)
    _copy(f"{spec.image.root}/.", f"{root}/", spec, deadline)
    for name in ("kernel", "initrd"):
        if getattr(spec.image, name):
            _copy(getattr(spec.image, name), spec.file(name), spec, deadline)
    os.chmod(root, 0o755)  # becomes the mode of the guest's /
    host_key = make_own(root, spec.name, spec.ssh_public_key, spec.user_data, spec.folder)
    _disk(spec, root, uuid, deadline)
    remove_tree(root, deadline)
    # The domain file says that the guest is whole, so nothing may be lost by a power cut after it is written.
    files = [path for path in map(spec.file, (DISK, "kernel", "initrd")) if os.path.exists(path)]
    command(["sync", *files], spec.name, "check the disk", timeout=min(COPY_TIME, max(1.0, deadline.left)))
    _finish(spec, libvirt)
    return host_key


def _finish(spec: Spec, libvirt: Libvirt) -> None:
    """Make the domain of a guest whose disk is ready."""
    with open(os.open(spec.file(CONSOLE), os.O_WRONLY | os.O_CREAT, 0o600), "wb"):
        pass  # QEMU's user may not make it
    write_whole(spec.file(DESCRIPTION), xml(spec), 0o600)
    # QEMU's user may pass the folder, and reads only what libvirt gives to it.
    os.chmod(spec.folder, 0o711)
    libvirt.define(xml(spec))


def begin_copy(spec: Spec) -> None:
    """Make the folder, and the empty disk, of a guest whose disk is copied from another host."""
    os.makedirs(os.path.dirname(spec.folder), mode=0o711, exist_ok=True)
    there = own_disk.recorded(spec.folder)
    if there is None or there.guest != spec.uuid:
        remove_tree(spec.folder)  # which the caller has seen to be nobody's: the rest of a run that was killed here
        os.mkdir(spec.folder, 0o700)
        own_disk.begin(spec.folder, spec.uuid)


def take_copy(spec: Spec, libvirt: Libvirt) -> None:
    """Make a guest of the disk, and of the files it boots with, that were copied into its folder. A run that was killed
    is ended by the next one.
    """
    own_disk.take(spec.folder, spec.uuid)
    _finish(spec, libvirt)


def words_of(spec: Spec, cmdline: str) -> str | None:
    """Return the words of its image in a guest's command line; None where a person has changed the others."""
    own = kernel_words(spec, "")
    return cmdline[len(own) :].strip() if f"{cmdline} ".startswith(f"{own} ") else None


def _copy(source: str, target: str, spec: Spec, deadline: Deadline) -> None:
    argv = ["cp", "-a", "--reflink=auto", source, target]
    command(argv, spec.name, "check the space there", timeout=min(COPY_TIME, max(1.0, deadline.left)))


def _disk(spec: Spec, root: str, uuid: str, deadline: Deadline) -> None:
    """Make ext4, of the flavor's size and with this UUID, in the file of the disk, which stays sparse."""
    size = f"{spec.local_gb}G" if spec.local_gb else f"{_used(root) + ROOM}M"
    path = spec.file(DISK)
    argv = [*MAKE, "-U", uuid, "-d", root, path, size]
    remedy = "raise local_gb of its flavor, or check the space there"
    command(argv, f"disk of {spec.name}", remedy, timeout=min(COPY_TIME, max(1.0, deadline.left)))


def must_fit(spec: Spec) -> None:
    """Raise HeteroError where no disk of the flavor's size, with the image in it, can be made in place of the present
    one.
    """
    size = spec.local_gb << 30 if spec.local_gb else (_used(spec.image.root) + ROOM) << 20
    remedy = f"choose an image that has room in the {spec.local_gb or 'few'} GiB of its flavor (local_gb)"
    must_hold(spec.image.root, spec.file(DISK), size, MAKE, remedy, copies=2)


def _used(root: str) -> int:
    """Return the MiB that a root takes, with the names and inodes of its files."""
    said = command(["du", "--apparent-size", "--block-size=4K", "--summarize", root], root)
    return int(said.split()[0]) // 256 * 5 // 4


def kernel_words(spec: Spec, cmdline: str) -> str:
    """Return the kernel's command line (ip= as in Documentation/admin-guide/nfs/nfsroot.rst)."""
    ip = f"ip={spec.address}::{spec.gateway or ''}:{spec.netmask}:{spec.name}:eth0:off"
    return " ".join(filter(None, ["root=/dev/vda rw rootfstype=ext4 console=ttyS0 net.ifnames=0", ip, cmdline]))


def xml(spec: Spec) -> str:
    """Return libvirt's description of a guest as text."""
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
    """Return in words what of a guest differs from its claim: its domain, or its next start's port and devices.

    :raises Refused: its disk is missing: of one that runs, the rest of it is lost with its end.
    """
    must_have("root", spec.file(DISK))
    domain = libvirt.domain(spec.name).described()
    if domain is None:
        return ["domain"]
    has = hostdev.devices_in(domain)
    found = ["port on the bridge"] if _pin(domain, spec) else []
    wrong = set(spec.devices).difference(has).union(set(has).intersection(spec.others))
    return found + [f"device {address}" for address in sorted(wrong)]


def _pin(domain: ElementTree.Element, spec: Spec) -> bool:
    """Set the MAC and the port of a domain's interface to those of its address; return whether they differed."""
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
    """Restore the domain, and give its next start the port and the devices of its claim, and none of others'.

    A domain that is made of its description starts with no other devices: the description may be older than devices
    that were taken back since.
    """
    domain = libvirt.domain(spec.name)
    found = domain.described()
    anew = found is None
    if anew:
        libvirt.define(read_at(spec.file(DESCRIPTION), MOST).decode())
    description = domain.xml(live=False) if found is None else found
    if _pin(description, spec):
        libvirt.define(ElementTree.tostring(description, encoding="unicode"))
    has = hostdev.devices_in(domain.xml(live=False))
    for address in spec.devices:
        if address not in has:
            domain.attach(hostdev.xml(address), live=False)
    for address, given in has.items():
        if address in spec.others or (anew and address not in spec.devices):
            domain.detach(hostdev.xml(address, given.managed), live=False)


def next_start(name: str, folder: str, libvirt: Libvirt) -> ElementTree.Element:
    """Return with what a guest starts next: its domain, or what that is made of again; an empty one of neither."""
    found = libvirt.domain(name).described()
    if found is not None:
        return found
    with contextlib.suppress(OSError, ElementTree.ParseError):
        return ElementTree.fromstring(read_at(os.path.join(folder, DESCRIPTION), MOST))
    return ElementTree.Element("domain")


def live_devices(domain: Domain) -> set[str]:
    """Return the PCI addresses of the running guest's devices."""
    return set(hostdev.devices_in(domain.xml(live=True)))


def uuid_of(name: str, libvirt: Libvirt) -> str | None:
    """Return the UUID of the domain of that name, or None."""
    found = libvirt.domain(name).described()
    return None if found is None else found.findtext("uuid")


def remove(
    name: str, folder: str, libvirt: Libvirt, deadline: Deadline, must_be_gone: Callable[[], None] = lambda: None
) -> None:
    """End a guest and remove its domain and its folder, in whatever state they are.

    :param must_be_gone: raises HeteroError where the guest may run, although libvirt has no such domain any more.
    """
    domain = libvirt.domain(name)
    if domain.defined:
        domain.stop()
        domain.undefine()
        if domain.defined:
            raise HeteroError("is still there, although it was undefined", domain.thing, "see: virsh list --all")
    must_be_gone()
    # First, so that the rest of a killed removal is not taken for a whole guest.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, DESCRIPTION))
    # Last what says whose the rest is.
    for entry in os.listdir(folder) if os.path.isdir(folder) else ():
        if entry != own_disk.RECORD:
            remove_tree(os.path.join(folder, entry), deadline)
    remove_tree(folder, deadline)
