# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI devices that a guest has by the table of allocations: whether they are there, and which driver they are on.

guest.py starts the guest with them. guest_claims.py allocated them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Sequence

from ..core.changes import Change
from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused
from ..devices.pci import domains, sysfs
from ..devices.pci.allocation import is_own
from ..devices.pci.binding_change import change_driver
from ..devices.pci.sysfs import STUBS
from ..hypervisors.libvirt.attachment import by_hand, driver_before
from .work import BACK

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation
    from .work import Work

PUT = "put its card back there"
#: Of a device that was given by hand, without which the guest starts.
TAKE = ", or take it from its guest (module hetero.compute.libvirt_hostdev, state detached)"


class GuestDevices:
    """The PCI devices of one guest.

    :param work: the work on the guest, under its lock; its claim is looked at anew each time.
    """

    def __init__(self, work: Work) -> None:
        self._work, self._paths = work, work.host.pci

    @property
    def rows(self) -> list[Allocation]:
        """The allocations of all devices that it has."""
        return self._work.host.store.allocations(self._work.claim.holder)

    @property
    def to_start_with(self) -> list[Allocation]:
        """The allocations of all its devices but those that it was given by hand for one run."""
        return [row for row in self.rows if row.persistent]

    @property
    def of_others(self) -> list[str]:
        """The addresses of the devices that others have by the table, or with which another domain runs that it has not
        by the table itself.
        """
        rows, holder = self._work.host.store.allocations(), self._work.claim.holder
        own = {row.address for row in rows if row.holder == holder}
        others = {row.address for row in rows}
        with suppress(HeteroError):  # a file of libvirt's that is no XML is told by who is asked for a device
            running = domains.running(self._paths)
            others.update(address for address, names in running.items() if self._work.claim.instance not in names)
        return sorted(others - own)

    @property
    def told(self) -> str:
        """The devices that it starts with in words, to be added to what is said of its start."""
        rows = self.to_start_with
        return f" with {' '.join(row.address for row in rows)}" if rows else ""

    def must_be_there(self) -> None:
        """Raise Refused if one that it starts with is no more at its address, or another device is there."""
        rows, name = self.to_start_with, self._work.claim.instance
        for row, device in self._others(rows):
            what = f"its device at {row.address} was a {row.wanted.arch}, and a {device.ids} is there now"
            way = TAKE if by_hand(row) else "; terminate leaves the other device as it is"
            raise Refused(what, name, f"{PUT}{way}")
        for row in rows:
            if sysfs.look(row.address, self._paths) is None:
                what = f"its device at {row.address} is no more on this host"
                raise Refused(what, name, f"{PUT}{TAKE if by_hand(row) else ', or terminate it'}")

    def is_there(self, row: Allocation) -> bool:
        """Return whether the device that was given is at its address, and no other one."""
        device = sysfs.look(row.address, self._paths)
        return device is not None and is_own(row, device)

    def bind(self, driver: str, check: bool = False) -> None:
        """Bring the devices that it starts with to a driver.

        :param check: only raise HeteroError where that is refused.
        """
        self._bind(self.to_start_with, driver, check=check)

    def give_back(self) -> None:
        """Bring its devices back to the drivers that they were on before. Another device at an address of theirs stays
        as it is, as does one of which no such driver is known.
        """
        rows = self.rows
        others = {row.address for row, _device in self._others(rows)}
        for driver in sorted(set(filter(None, map(driver_before, rows)))):
            mine = [row for row in rows if driver_before(row) == driver and row.address not in others]
            self._bind(mine, driver, BACK)

    def _others(self, rows: Sequence[Allocation]) -> list[tuple[Allocation, sysfs.Device]]:
        """Return [(row, device)] of other devices at the addresses of its own."""
        found = ((row, sysfs.look(row.address, self._paths)) for row in rows)
        return [(row, device) for row, device in found if device is not None and not is_own(row, device)]

    def _bind(self, rows: Sequence[Allocation], driver: str, at_least: float = 0.0, check: bool = False) -> None:
        """Bring devices to a driver. What is bound at each boot of the host stays as it is.

        :param at_least: seconds that there are for it, even if the work's deadline is nearer.
        """
        work = self._work
        there = [found for found in (sysfs.look(row.address, self._paths) for row in rows) if found is not None]
        if not there:
            return
        change = Change(check)
        asked: dict[str, Any] = dict(
            devices=[device.address for device in there],
            driver=driver,
            persistent=None,
            # An operator has put the device on a stub driver on purpose, and no process can use it there.
            force=all(device.driver in STUBS for device in there),
            holder=work.claim.holder,
        )
        result = change_driver(asked, change, Deadline(max(at_least, work.deadline.left)), self._paths)
        if not check:
            work.change.take(change)
        if result.get("failed"):
            raise Refused(result["msg"], work.claim.instance, "then run this again")
