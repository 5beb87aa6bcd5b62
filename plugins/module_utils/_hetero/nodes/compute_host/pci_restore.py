# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero pci-restore`: ends what an earlier change of bindings has left, and binds what is to be bound at each boot.

udev's rules bind a card before its driver is loaded; where that driver came first (in the kernel, from the initramfs),
the card is bound here. Run by a unit at boot, by hand, and by whoever waits for a pending change.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Sequence, Tuple

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.locks import lock
from ...devices.pci import sysfs
from ...devices.pci.change_plan import Plan, refuse
from ...devices.pci.change_steps import begin, carry_out, load, settle
from ...devices.pci.holders import holders
from ...devices.pci.journal import Journal
from ...devices.pci.paths import LOCK, Paths, here
from ...devices.pci.persistence import read

if TYPE_CHECKING:
    from ...devices.pci.persistence import Binding
    from ...devices.pci.sysfs import Device

#: {(IOMMU group, or the address of a device without one, and driver): addresses that are still to be bound}.
Fitting = Dict[Tuple["int | str", str], List[str]]
VERB = "pci-restore"
DOES = "Bind PCI devices that are to be bound at each boot, and end a change of bindings that was cut off."
#: Seconds that an unbind may take; a driver at boot lets go of a card that nobody uses yet in less than one.
TIMEOUT = 30.0


def restore(paths: Paths, deadline: Deadline, say: Callable[[str], object]) -> bool:
    """End earlier changes and bind what is to be bound; return whether everything is as it is to be.

    :param say: is called with a text for each thing that was done or could not be.
    """
    with lock(paths.run_folder, LOCK, VERB, VERB, deadline):
        journal, well = Journal(paths), True
        for operation in list(journal.operations):
            if not settle(operation, journal, paths, deadline, say):
                say(f"{operation.words} still waits for a driver to let go")
                well = False
        bindings = read(paths)
        fitting, others = _present(bindings, sysfs.devices(paths))
        for text in others:
            say(text)
            well = False
        for (_group, driver), addresses in fitting.items():
            try:
                left = _bind(addresses, driver, bindings, journal, paths, deadline)
            except HeteroError as error:
                say(str(error))
                well = False
            else:
                say(f"{', '.join(addresses)} {'waits for a driver to let go' if left else f'is on {driver}'}")
                well &= not left
    return well


def _present(bindings: Mapping[str, Binding], devices: Mapping[str, Device]) -> tuple[Fitting, list[str]]:
    """Return (what is still to be bound, texts of what is not as it was when it was bound for good).

    Devices of one IOMMU group go together: while one of them is on the host's driver, none can go to a guest.
    """
    fitting: Fitting = {}
    others: list[str] = []
    for address, binding in sorted(bindings.items()):
        device = devices.get(address)
        if device is None:
            others.append(f"{address} is not there")
        elif not binding.fits(device):
            others.append(f"{address} is {device.ids}, not {binding.ids}: left as it is")
        elif not device.driver == binding.driver == device.override:
            place = address if device.group is None else device.group
            fitting.setdefault((place, binding.driver), []).append(address)
    return fitting, others


def _bind(
    addresses: Sequence[str],
    driver: str,
    bindings: Mapping[str, Binding],
    journal: Journal,
    paths: Paths,
    deadline: Deadline,
) -> list[str]:
    """Bind these, and no other function of their cards; return those that wait for their driver."""
    devices = sysfs.devices(paths)
    planned = Plan(tuple(devices[address] for address in addresses), driver, devices)
    held = holders(planned.moving, paths)[0]
    # that it is the display which the machine boots on was gone past when it was bound for good
    refuse(planned, {name: [one for one in those if one.kind != "display"] for name, those in held.items()}, False)
    load(driver)
    return carry_out(begin(planned, bindings, [], journal, paths), journal, paths, deadline)


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = argparse.ArgumentParser(prog=f"hetero {VERB}", description=DOES)
    words.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds to give up after (%(default)g)")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    paths = here()
    well = restore(paths, Deadline(options.timeout), lambda text: sys.stdout.write(f"{text}\n"))
    return 0 if well else 1
