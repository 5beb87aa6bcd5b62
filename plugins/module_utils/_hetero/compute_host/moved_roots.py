# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of an instance moves to another host: the files of its root, and what is made of their copies there.

files/sparse_copy.py copies them, migration.py says when.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, cast

from ..claims.host.allocation import gpu_of
from ..core.errors import HeteroError, Refused, naming
from ..core.plays import play
from ..files import file_system, sparse_copy
from ..hypervisors.libvirt import guest_folder, guests
from ..hypervisors.libvirt.attachment import by_hand, holder_of
from ..hypervisors.lxc import disks, id_maps, identity, new_container
from ..roots import machine_identity
from ..scheduling.compute_hosts import gpu_count
from ..site.kinds import CONTAINER, GUEST
from .guests_folder import must_be_mounted

if TYPE_CHECKING:
    from .container import ContainerWork
    from .guest import GuestWork
    from .work import Work

#: What a person does about an instance that cannot move as it is.
BY_HAND = (
    f"ask for another one ({play('provision_instance', instance='OTHER', flavor='FLAVOR')}), copy there what is needed "
    f"(rsync over ssh), then end this one ({play('terminate_instance', instance='{name}')})"
)
PLAIN = "has a plain folder as its root, as an earlier release made it, and only a file system of its own moves"
IDS = "its users have ids by a map that was written by hand, and nobody can tell which they are on another host"
NO_PLACE = "{name} in its root is {what}: the key of its claim cannot be put there, and it would start on no host"
PLACE_WAY = "have its tenant put a folder there, with that key in its file authorized_keys; then run this again"
MORE_GPUS = "has {have} GPUs, and its flavor names {asked}: those that were given by hand do not move"
MORE_CARDS = "has {cards} by hand, beside what its flavor names: that does not move"
TAKE_BACK = "take them back (module {module}, state detached), then run this again"
DISKS = "has further disks ({paths}), which stay on their host"
OWN_PARTS = "its domain has {parts} that its claim does not know: they would not be there on another host"
BY_EDITOR = "take that from the domain (virsh edit {name}), then run this again; or {by_hand}"
WORDS = "its kernel's command line was changed by hand, and has another address on another host"
#: Parts of a domain that have data or a way of their own.
PARTS = {
    "devices/filesystem": "a shared folder",
    "devices/tpm": "a TPM",
    "os/nvram": "a firmware's memory",
    "devices/memory": "memory modules",
}
OTHER_IDS = "its root belongs to {other}, and containers of this host to {own} (gpu_lxc_unprivileged of both hosts)"
UNPRIVILEGED, PRIVILEGED = "ids of its own", "the host's own ids"
ALIKE = "have both hosts set up alike, or choose another host: -e node=HOST"


class MovedRoot(ABC):
    """The root of one instance, under its lock: on the host that it leaves, or on that to which it moves."""

    @property
    @abstractmethod
    def files(self) -> dict[str, str]:
        """{name: path} of all files that move."""

    @property
    @abstractmethod
    def kinds(self) -> list[str]:
        """The kinds of its devices, sorted: architectures of GPUs, ids of PCI devices."""

    @abstractmethod
    def must_be_movable(self) -> dict[str, Any]:
        """Return what the other host is to know of the root; raise Refused if something of it would stay, or is not as
        it was made.
        """

    @abstractmethod
    def let_go(self) -> None:
        """Have nothing on the host it leaves write to the root of one that is off."""

    @property
    @abstractmethod
    def is_let_go(self) -> bool:
        """Return whether that was done, so that looking into the root again would change it."""

    @abstractmethod
    def must_be_takeable(self, of_root: Mapping[str, Any]) -> None:
        """Raise Refused if the host to which it moves cannot have it."""

    @abstractmethod
    def begin(self) -> None:
        """Make the place for the copies, as that of a half-made one."""

    @abstractmethod
    def take(self, of_root: Mapping[str, Any]) -> str:
        """Make the container or guest of the copies; return its key."""

    @abstractmethod
    def release(self) -> None:
        """Let it start, now that its claim says that it may."""

    @property
    def bytes(self) -> int:
        """The bytes that the files take."""
        return sum(map(sparse_copy.bytes_of, self.files.values()))

    @property
    @abstractmethod
    def stamp(self) -> str:
        """Return what tells how a root was let go; "" where that is not to be told."""

    @abstractmethod
    def is_as(self, stamp: str) -> bool:
        """Return whether a root is as it was let go: nothing was written to it since, and it was not put back."""

    @property
    def sizes(self) -> dict[str, int]:
        """{name: length} of the files."""
        return {name: sparse_copy.size_of(path) for name, path in self.files.items()}


class ContainersRoot(MovedRoot):
    """The file system of a container."""

    def __init__(self, work: ContainerWork) -> None:
        self.work, self.container = work, work.container

    @property
    def files(self) -> dict[str, str]:
        return {disks.FILE: disks.file_of(self.container)}

    @property
    def kinds(self) -> list[str]:
        store, gpus = self.work.host.store, self.work.host.gpus
        found = [gpu_of(row.address, row.uuid, gpus) for row in store.allocations(self.work.claim.holder)]
        return sorted(str(gpu.arch) for gpu in found if gpu)

    def must_be_movable(self) -> dict[str, Any]:
        name = self.work.claim.instance
        by_hand = BY_HAND.format(name=name)
        if not disks.has(self.container):
            raise Refused(PLAIN, name, by_hand)
        self.work.must_be_own()
        if disks.has_errors(self.container):
            remedy = f"{play('reboot_instance', instance=name)} has it checked; then run this again"
            raise Refused("its file system has errors", name, remedy)
        self._must_take_its_key()
        have, asked = len(self.work.host.store.allocations(self.work.claim.holder)), gpu_count(self.work.claim.flavor)
        if have != asked:
            way = TAKE_BACK.format(module="hetero.compute.lxc_gpu_attach")
            raise Refused(MORE_GPUS.format(have=have, asked=asked), name, way)
        id_map = self.work.id_map
        first = id_map[0].outside if id_map else None
        if first is not None and set(id_map) != set(id_maps.of(first)):
            raise Refused(IDS, name, by_hand)
        return dict(first_id=first)

    def _must_take_its_key(self) -> None:
        """Raise Refused where nothing can be put into the root's authorized_keys, as each start does that misses it."""
        root = disks.root_of(self.container)
        if self.is_let_go:
            return
        odd = machine_identity.odd_place(root, *machine_identity.KEY_PLACES)
        if odd is not None:
            raise Refused(NO_PLACE.format(name=odd[0], what=odd[1]), self.work.claim.instance, PLACE_WAY)

    def let_go(self) -> None:
        disks.unmount(self.container, self.work.host.machine.disks)

    @property
    def is_let_go(self) -> bool:
        return not os.path.ismount(disks.root_of(self.container))

    @property
    def stamp(self) -> str:
        written = file_system.written_to(disks.file_of(self.container))
        return "" if written is None else f"{written:016x}"

    def is_as(self, stamp: str) -> bool:
        """A container's configuration refuses each start; and its host's boot mounts its root, which writes to it. So
        only one that was put back from a backup is another: less was written to that.
        """
        now = self.stamp
        return not now or now >= stamp

    def must_be_takeable(self, of_root: Mapping[str, Any]) -> None:
        has_own = of_root.get("first_id") is not None
        if has_own != self.work.host.config.lxc.unprivileged:
            words = (UNPRIVILEGED, PRIVILEGED) if has_own else (PRIVILEGED, UNPRIVILEGED)
            raise Refused(OTHER_IDS.format(other=words[0], own=words[1]), self.work.claim.instance, ALIKE)
        self.work.must_not_be_lost()
        self.work.refuse_unmounted()

    def begin(self) -> None:
        self.work.must_be_own()
        # what a run that was killed had mounted, to make a container of it, has changed by that: it is compared anew
        disks.unmount(self.container, self.work.host.machine.disks)
        new_container.begin_copy(self.work.spec())

    def take(self, of_root: Mapping[str, Any]) -> str:
        spec = self.work.spec()
        new_container.take_copy(spec, of_root.get("first_id"), self.work.deadline)
        key = identity.key_of(self.container)
        if key is None:
            raise HeteroError("has no id", self.container.config_file, "run this again")
        return key

    def release(self) -> None:
        identity.note_marks([self.container.lxcpath], self.work.host.store)
        new_container.put_back(self.work.spec(), [new_container.CONFIGURATION])


@dataclass(frozen=True)
class Booted:
    """What is used of an image to make a guest's domain: it boots with files that were copied."""

    arch: str
    initrd: bool
    cmdline: str


class GuestsRoot(MovedRoot):
    """The disk of a guest, with the kernel and the initrd beside it."""

    def __init__(self, work: GuestWork) -> None:
        self.work = work

    @property
    def files(self) -> dict[str, str]:
        paths = {name: os.path.join(self.work.folder, name) for name in (guest_folder.DISK, "kernel", "initrd")}
        return {name: path for name, path in paths.items() if os.path.exists(path)}

    @property
    def kinds(self) -> list[str]:
        return sorted(str(row.wanted.arch) for row in self.work.devices.rows)

    def must_be_movable(self) -> dict[str, Any]:
        name, starts = self.work.claim.instance, self.work.starts()
        self.work.must_be_whole()
        self.work.must_be_own()
        if self.work.beside:
            paths = ", ".join(self.work.beside)
            raise Refused(DISKS.format(paths=paths), name, self._by_editor)
        cards = [row.address for row in self.work.devices.rows if by_hand(row)]
        if cards:
            way = TAKE_BACK.format(module="hetero.compute.libvirt_hostdev")
            raise Refused(MORE_CARDS.format(cards=" ".join(cards)), name, way)
        parts = [word for path, word in PARTS.items() if starts.find(path) is not None]
        parts += ["further networks"] if len(starts.findall("devices/interface")) != 1 else []
        if parts:
            raise Refused(OWN_PARTS.format(parts=" and ".join(parts)), name, self._by_editor)
        words = guests.words_of(self.work.spec(), starts.findtext("os/cmdline") or "")
        if words is None:
            raise Refused(WORDS, name, self._by_editor)
        kind = starts.find("os/type")
        arch = kind.get("arch") if kind is not None else None
        return dict(arch=arch or self.work.host.cpu_arch, cmdline=words)

    @property
    def _by_editor(self) -> str:
        name = self.work.claim.instance
        return BY_EDITOR.format(name=name, by_hand=BY_HAND.format(name=name))

    def let_go(self) -> None:
        """Have it on the disk with its time, which a power cut would take back else. Only QEMU had it open."""
        with suppress(OSError):
            file = os.open(os.path.join(self.work.folder, guest_folder.DISK), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    @property
    def is_let_go(self) -> bool:
        return False  # its disk is not looked into

    @property
    def stamp(self) -> str:
        try:
            status = os.stat(os.path.join(self.work.folder, guest_folder.DISK))
        except FileNotFoundError:
            return ""  # nothing can have been written to it
        return f"{status.st_size:x}-{status.st_mtime_ns:x}"

    def is_as(self, stamp: str) -> bool:
        return self.stamp in ("", stamp)

    def must_be_takeable(self, of_root: Mapping[str, Any]) -> None:
        self.work.must_not_be_lost()
        must_be_mounted(self.work.host, self.work.claim.instance)

    def begin(self) -> None:
        self.work.must_be_own()
        guests.begin_copy(self.work.spec())

    @property
    def _folder(self) -> str:
        return self.work.folder

    def take(self, of_root: Mapping[str, Any]) -> str:
        initrd = os.path.exists(os.path.join(self._folder, "initrd"))
        booted = Booted(str(of_root["arch"]), initrd, str(of_root["cmdline"]))
        # a copy's files say nothing of an image, and only what `Booted` has is asked of it
        guests.take_copy(self.work.spec(cast("Any", booted)), self.work.libvirt)
        return holder_of(self.work.claim.instance)

    def release(self) -> None:
        """Do nothing: libvirt starts no guest by itself that was not told to."""


#: {what an instance runs in: what of it moves}.
KINDS: dict[str | None, Any] = {CONTAINER.section: ContainersRoot, GUEST.section: GuestsRoot}
#: Names of the files of each kind that may come from another host, for a path is made of them.
NAMES = {CONTAINER.section: (disks.FILE,), GUEST.section: (guest_folder.DISK, "kernel", "initrd")}


def root_of(work: Work) -> MovedRoot:
    """Return the root of an instance, by what it runs in."""
    made: MovedRoot = KINDS[work.claim.kind](work)
    return made


def must_have_room(folder: str, needed: int) -> None:
    """Raise HeteroError if there is no room for a root of so many bytes in a folder, which may be yet to be made."""
    with suppress(ValueError), naming(folder):
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
    sparse_copy.must_have_room(folder, needed)
