# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests take besides memory, processors and disk: PCI devices, by the aliases of their flavor.

host_claims.py has the transaction; devices/pci/allocation.py tells which devices are free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..claims.those_who_wait import NOTHING
from ..core.deadline import Deadline
from ..devices.pci import allocation
from ..devices.pci.domains import is_there
from ..hypervisors.libvirt.attachment import holder_of
from ..hypervisors.libvirt.domain import CALL_TIME, Libvirt, must_be_name
from ..scheduling.compute_hosts import aliases_of
from ..scheduling.places import held_for
from .domains import free_again, of_no_claim
from .unclaimed_instances import of_guest

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from .claim_request import ClaimRequest
    from .host import Host


class Guests:
    """What guests take besides memory, processors and disk: PCI devices.

    It is used as host_claims.Containers is.

    :param request: of one request.
    """

    devices = "devices"
    #: No GPU that the store would allocate.
    wanted = None

    def __init__(self, host: Host, request: ClaimRequest) -> None:
        self.host = host
        self.flavor = request.flavor
        self.named = request.devices
        self.left = NOTHING
        self.reserved: dict[str, str] = {}
        self.reserved_amounts: dict[str, tuple[int, str]] = {}
        self._domains: set[str] | None = None

    @property
    def held(self) -> dict[str, str]:
        """{address: why} of the devices that others are to get."""
        return {**self.reserved, **{address: held_for(wish) for address, wish in self.left.devices.items()}}

    @property
    def asked(self) -> str:
        """The devices in the flavor's words: `2 × a1`."""
        return ", ".join(f"{count} × {name}" for name, count in aliases_of(self.flavor))

    @property
    def was_free(self) -> str:
        return f"{self.asked}, " if self.asked else ""

    def look(self) -> None:
        """Ask libvirt which domains there are. Its first answer since a boot may take a minute."""
        self._domains = set(Libvirt(Deadline(CALL_TIME), self.host.config.kvm.libvirt_uri).names())

    def taken(self, instance: str) -> str | None:
        """Return why no domain of that name can be made, or None. A guest that lies there may be somebody's."""
        must_be_name(instance)
        lies_there = of_guest(self.host, instance)
        if lies_there:
            return lies_there
        if self._domains is None:  # an instance that was there when the transaction was yet to begin
            self.look()
        if instance in (self._domains or ()) or is_there(instance, self.host.pci):
            return f"there is a domain {instance} already that is no instance: rename it, or choose another name"
        return None

    def allocate(self, claim: Claim) -> None:
        """Write down which devices the claim has. `taken` has seen that no domain of its name has any.

        What a guest has of which only its folder tells is written down first, as reconcile does.
        """
        for row in self.host.store.allocations(holder_of(claim.instance)):
            free_again(self.host, row)
        asked = allocation.requested(self.flavor, self.host.config.kvm.aliases, self.host.name)
        if asked or self.named:
            given = {row.address for row in self.host.store.allocations()}
            for address, (name, *_others) in of_no_claim(self.host).items():
                if address not in given:
                    allocation.write_down(self.host.store, holder_of(name), address, self.host.pci)
            allocation.allocate(self.host.store, claim.holder, asked, self.host.pci, self.named, self.held)
