# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an instance in a KVM guest: disk, domain, devices, start, ssh. Each step looks first, and reports.

lifecycle.py calls them in order, as for containers, and decides what is done when a step fails.
"""

from __future__ import annotations

import ipaddress
import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Collection, Sequence

from ..claims.host.allocation import ATTACHED
from ..core.errors import HeteroError, Refused
from ..core.plays import play
from ..devices.pci.domains import is_there
from ..files.file_system import has_errors
from ..files.mounts import must_hold_no_mount
from ..hypervisors import pinning
from ..hypervisors.libvirt import boot_files, guest_folder, guests, own_disk
from ..hypervisors.libvirt.attachment import by_hand, holder_of
from ..hypervisors.libvirt.domain import Libvirt
from ..hypervisors.libvirt.domain_disks import disks_by_file, disks_of, leaves, must_carry_none, must_have_one_name
from ..hypervisors.libvirt.hostdev import VFIO
from ..hypervisors.lxc import folders
from ..site import instance_states
from .domains import write_down_next_start
from .guest_devices import GuestDevices
from .guests_folder import must_be_mounted
from .work import Work

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from ..claims.host.allocation import Allocation
    from ..claims.host.claim_records import Claim
    from ..core.changes import Change
    from ..core.deadline import Deadline
    from ..hypervisors.libvirt.domain import Domain
    from ..images.store import Image
    from .host import Host
    from .work import Report

#: If libvirt does not list what it has a file of. Of a guest that is down, it may not be able to read that.
RUNS = "by this file of libvirt's it runs, and libvirt lists no such domain"
DEFINED = "by this file of libvirt's it is defined, and libvirt lists no such domain"
HIDDEN_WAY = "restart libvirt (libvirtd or virtqemud), then run this again"
LEAVES_WAY = f"{play('stop_instance', instance='{name}')} stops it; do that, then run this again"
STAY = "further disks of the domain stay where they are: {paths}"
#: If a rebuild seems to be cut off by a database and a record that are both older than its end.
NEWER = "was made after its rebuild was begun, and has run; the host's database and its record know nothing of that"
NEWER_WAY = "nothing is touched: put newer copies of both back; where nobody needs what is there, {anew} makes it anew"
UNREAD_WAY = f"{HIDDEN_WAY}; where it lists none after that either (virsh list --all), move this file aside first"


class Running:
    """A guest that is ended as a container is: by its own init, or by force."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    @property
    def running(self) -> bool:
        return not self.domain.ended

    def shutdown(self, timeout: float) -> None:
        self.domain.shutdown(timeout)

    def stop(self) -> None:
        self.domain.stop()


class GuestWork(Work):
    """An instance in a KVM guest, under its lock."""

    word, whole = "guest", "guest and disk"
    container: Running

    def __init__(self, host: Host, claim: Claim, change: Change, deadline: Deadline, report: Report) -> None:
        super().__init__(host, claim, change, deadline, report)
        self.libvirt = Libvirt(deadline, host.config.kvm.libvirt_uri)
        self.domain = self.libvirt.domain(claim.instance)
        self.container = Running(self.domain)
        self.folder = os.path.join(host.config.kvm.guests_folder, claim.instance)
        self.devices = GuestDevices(self)
        #: In words, the disk that its domain has in place of its own.
        self._astray: str | None = None
        #: The disks beside its own that stay where it is removed.
        self.beside: list[str] = []

    @property
    def is_made(self) -> bool:
        """Return whether the guest's files are whole, and its domain, where there is one, was made for this claim."""
        return self.claim.container is not None and guest_folder.is_whole(self.folder) and not self._stranger()

    @property
    def sign(self) -> str:
        """The file whose existence shows that the guest is there."""
        return os.path.join(self.folder, guest_folder.DESCRIPTION)

    @property
    def has_root(self) -> bool:
        return os.path.lexists(os.path.join(self.folder, guest_folder.DISK))

    @property
    def inside(self) -> str:
        """Return the path of the guest's console log, for people."""
        return os.path.join(self.folder, guest_folder.CONSOLE)

    def is_of(self, claim: Claim) -> bool:
        return guest_folder.is_whole(self.folder) and not self._stranger()

    def _stranger(self) -> bool:
        """Return whether the domain of that name, or what lies in its folder, was not made for this claim."""
        found = {guests.uuid_of(self.claim.instance, self.libvirt), guest_folder.made_for(self.folder)}
        return not found <= {None, self.spec().uuid}

    # ---- steps

    def make(self) -> None:
        """Make disk, keys and domain; leave alone what is there and as the claim asks for."""
        start = time.monotonic()
        if self.is_made:
            if not self.container.running:
                self.must_be_alone()
            self.must_be_whole()
            self.correct((), self._say_put_back)
            return
        self.must_not_be_lost()
        self._may_be_removed()
        own_disk.must_hold_only_own(self.folder)
        if self.making == instance_states.BUILDING:  # one that is made anew is so by somebody's word
            must_be_mounted(self.host, self.claim.instance)
        image = self.image(self.claim.image)
        self.change.note(self.claim.instance, {"guest": None}, {"guest": f"from {self.claim.image}"})
        if self.change.check:
            self.report("image", f"disk would be made from {self.claim.image}")
            return
        _must_boot(image, self.claim.instance)
        self.move(self.making)
        host_key = guests.create(self.spec(image), self.libvirt, self.deadline)
        self.put(container=holder_of(self.claim.instance), host_key=host_key, image_hash=image.hash)
        self.report("image", f"disk ready from {image.name}, {self.claim.address}", time.monotonic() - start)

    def _refuse_stranger(self) -> None:
        guest_folder.must_be_readable(self.folder)
        self._refuse_hidden()
        self._refuse_what_ran(f"guest {self.folder}", self.has_run)
        if self._stranger():
            here = guest_folder.made_for(self.folder) in (None, self.spec().uuid)
            what = f"{self.domain.thing if here else f'guest {self.folder}'} is not the one that was made for it"
            raise Refused(what, self.claim.instance, "look into it; to be made anew, it must have another name")

    def _refuse_hidden(self) -> None:
        """Raise Refused if libvirt has the guest by a file, and does not know of it: its driver did not start, or
        another one answers. So, too, if it has the guest by another name, or another domain runs from its disk.
        """
        paths = self.host.pci
        must_have_one_name(self.claim.instance, self.spec().uuid, os.path.join(self.folder, guest_folder.DISK), paths)
        for folder, what, way in ((paths.running_domains, RUNS, HIDDEN_WAY), (paths.domains, DEFINED, UNREAD_WAY)):
            file = os.path.join(folder, f"{self.claim.instance}.xml")
            if os.path.exists(file):
                if self.domain.defined:
                    return
                raise Refused(what, file, way)

    def has_run(self) -> bool:
        """Return whether a guest is there and was ever started: its console's log is empty until then."""
        log = os.path.join(self.folder, "console.log")
        said = os.path.exists(log) and os.path.getsize(log) > 0
        return guest_folder.is_whole(self.folder) and (said or self.container.running)

    def must_not_be_newer(self) -> None:
        if self.is_left_old and guest_folder.was_used_since(self.folder, self._rebuild_begun, self.has_run):
            raise Refused(NEWER, self.folder, NEWER_WAY.format(anew=self.anew))

    def correct(self, parts: Collection[str], say: Callable[[Sequence[str]], object]) -> None:
        """Have the domain, and the devices of its next start, as its claim says.

        :param parts: is not looked at: all of a guest's parts are put back.
        :param say: is called with what is put back, or would be.
        """
        missing = guests.missing(self.spec(), self.libvirt)
        if missing:
            self.change.note(self.claim.instance, {"missing": missing}, {"missing": []})
            say(missing)
            if not self.change.check:
                guests.put_back(self.spec(), self.libvirt)
        if not self.change.check and self.domain.autostart(self.autostart):
            self.change.note(self.claim.instance, {"autostart": not self.autostart}, {"autostart": self.autostart})
        if not self.change.check:
            with suppress(HeteroError):  # one of an earlier release; on a full disk, the next look does it
                self._refuse_the_disk_of_a_claim()
                own_disk.record(self.folder, self.spec().uuid)

    @property
    def harm(self) -> str | None:
        """A guest can write anything to its disk, and this host runs no e2fsck on what a tenant may have forged.

        A disk elsewhere is told after `must_be_whole`, which has looked.
        """
        elsewhere = self._astray or self.leaves
        if elsewhere:
            return elsewhere
        if self.is_made and has_errors(os.path.join(self.folder, guest_folder.DISK)):
            return "its file system has errors: its own system is to check it (fsck); nothing else reads it"
        return None

    def spec(self, image: Image | None = None) -> guests.Spec:
        config, claim = self.host.config.kvm, self.claim
        network = ipaddress.ip_interface(f"{self.address}/{config.prefix_length}")
        return guests.Spec(
            name=claim.instance,
            made=claim.created,
            folder=self.folder,
            image=image,
            ssh_public_key=claim.ssh_public_key,
            user_data=self.user_data,
            bridge=config.bridge,
            address=self.address,
            netmask=str(network.netmask),
            gateway=config.gateway,
            memory_mb=claim.memory_mb,
            vcpus=claim.vcpus,
            local_gb=claim.local_gb,
            devices=tuple(row.address for row in self.devices.to_start_with),
            others=tuple(self.devices.of_others),
            domain_type=guests.domain_type(self.libvirt, config.domain_type) if image else "",
        )

    def must_start(self) -> None:
        self.must_be_alone()
        self._must_leave_nothing()
        pinning.must_hold("kvm", self.address, self.claim.instance)
        self.must_have_devices()
        self.devices.bind(VFIO, check=True)

    def must_have_devices(self) -> None:
        self.devices.must_be_there()

    def start(self) -> None:
        """Bring its devices to vfio-pci, then start the guest. libvirt leaves them there when the guest ends, so that
        the host's drivers never touch what a guest has had.
        """
        start = time.monotonic()
        if self.container.running:
            return
        self.change.note(self.claim.instance, {"state": self.claim.state}, {"state": instance_states.RUNNING})
        having = self.devices.told
        if self.change.check:
            self.report("guest", f"guest would be started{having}")
            return
        if self.claim.state != instance_states.REBUILDING:  # that keeps its claim whatever happens
            self.move(instance_states.STARTING)
        pinning.must_hold("kvm", self.address, self.claim.instance)
        self.must_have_devices()
        self.devices.bind(VFIO)
        self.domain.start()
        self.domain.autostart(self.autostart)
        self.report("guest", f"guest started{having}", time.monotonic() - start)

    def give_devices(self) -> None:
        """Check that the guest, which was started with its devices, has them all; raise Refused if one is missing.

        A device that was given by hand may be missing: it may be for the next start, or have been for a former run.
        """
        rows = self.devices.rows
        if not rows or (self.change.check and not self.container.running):
            return
        has = guests.live_devices(self.domain)
        for row in rows:
            if row.address not in has and not by_hand(row):
                what = f"runs without {row.address}, which is its own"
                raise Refused(what, self.claim.instance, "reboot it (how=hard), and it gets it")
        own = [row.address for row in rows if row.address in has]
        self.more.update(devices=own)
        if not self.change.check:
            with self.host.store.transaction():
                for row in rows:
                    if row.state != ATTACHED:
                        self.host.store.grant(replace(row, state=ATTACHED))

    def must_be_makeable(self, image: Image) -> None:
        _must_boot(image, self.claim.instance)
        guests.must_fit(self.spec(image))

    def must_be_own(self) -> None:
        self.libvirt = Libvirt(self.time_to_remove, self.libvirt.uri)
        self._refuse_stranger()
        disk = os.path.join(self.folder, guest_folder.DISK)
        must_carry_none(self.claim.instance, disk, self.host.pci, folders.not_mounted)
        must_hold_no_mount(self.folder, self.domain.thing)
        self._may_be_removed()
        self.must_be_alone()
        disks = disks_of(self.starts())
        own_disk.must_name_own(self.folder, disks, self._editor)
        self._must_leave_nothing()
        self.beside = own_disk.beside(self.folder, [*disks, *self._runs_from])

    @property
    def _runs_from(self) -> list[str]:
        return disks_by_file(self.claim.instance, self.host.pci.running_domains)

    @property
    def _editor(self) -> str:
        return own_disk.editor_of(self.claim.instance, self.folder, is_there(self.claim.instance, self.host.pci))

    @property
    def leaves(self) -> str | None:
        next_start = disks_by_file(self.claim.instance, self.host.pci.domains)
        return leaves(self.folder, self._runs_from, next_start, self._editor)

    def _must_leave_nothing(self) -> None:
        """Raise Refused if it runs from another disk than its own, which nothing would tell of after its end."""
        if self.leaves:
            raise Refused(self.leaves, self.claim.instance, LEAVES_WAY.format(name=self.claim.instance))

    def _may_be_removed(self) -> None:
        own_disk.may_be_removed(self.folder, self.spec().uuid, was_made=self.claim.container is not None)
        self._refuse_the_disk_of_a_claim()

    def _refuse_the_disk_of_a_claim(self) -> None:
        """Raise Refused if the disk came here with the line of another claim's guest, of which nothing else may be
        left.
        """
        came, store = own_disk.came_with(self.folder, self.spec().uuid), self.host.store
        kept = map(store.kept, store.records.instances()) if came else ()  # the database may be older
        for claim in (*store.claims(), *filter(None, kept)) if came else ():
            if came == guests.uuid_for(claim.instance, claim.created):
                what = own_disk.ANOTHERS.format(other=claim.instance, name=self.claim.instance)
                raise Refused(what, os.path.join(self.folder, guest_folder.DISK), own_disk.SWAP)

    def starts(self) -> Element:
        return guests.next_start(self.claim.instance, self.folder, self.libvirt)

    def must_be_whole(self) -> None:
        guest_folder.must_be_readable(self.folder)
        self._refuse_hidden()
        starts = self.starts()
        boot_files.must_boot(self.spec(), starts, self.libvirt)
        own_disk.must_be_own(self.folder, self.spec().uuid)
        self._refuse_the_disk_of_a_claim()
        own_disk.must_not_name_anothers(self.folder, self.spec().uuid, disks_of(starts), self._editor)
        self._astray = boot_files.astray(self.spec(), starts)

    def remove(self) -> None:
        """Remove guest, domain and disk."""
        self.must_be_own()
        if self.beside:
            self.report("disk", STAY.format(paths=", ".join(self.beside)))
        write_down_next_start(self.host, self.claim.instance)
        guests.remove(self.claim.instance, self.folder, self.libvirt, self.time_to_remove, self._refuse_hidden)
        self.put(container=None, host_key=None, image_hash=None)

    def is_on_host(self, row: Allocation) -> bool:
        return self.devices.is_there(row)

    def give_back(self) -> None:
        self.devices.give_back()


def _must_boot(image: Image, instance: str) -> None:
    if image.kernel is None:
        what = f"image {image.name} has no kernel"
        raise Refused(what, instance, "name one that boards boot, with kernel, initrd and root/")
