# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of bindings, made for all of its devices or none, as far as the kernel allows, and what is left of earlier
changes, finished.

A device gets its driver_override first, then leaves its driver, then is probed, so that no other driver takes it in
between. An unbind that waits for a holder can be neither ended nor taken back: the operation stays in the journal, and
the next run or the next boot finishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping

from ...core.command import command, ended, last_words
from ...core.deadline import Deadline
from ...core.errors import HeteroError, StepFailed
from ..gpus.processes import holders
from . import sysfs
from .change_plan import DEFAULT, must_leave, settled
from .groups import siblings
from .holders import vfio_nodes
from .journal import Operation
from .persistence import Binding, read, write
from .sysfs import SEE, driver_of, override_of
from .unbind import unbind, waits

if TYPE_CHECKING:
    from .change_plan import Plan
    from .journal import Journal
    from .paths import Paths
    from .sysfs import Device

#: Seconds to put one device back. A driver that it was given minutes ago releases it at once, or not at all.
BACK = 10.0


def load(driver: str) -> None:
    """Load a stub's driver into the kernel."""
    remedy = "it comes with Debian's generic kernel (linux-image-amd64), and not with the cloud kernel"
    command(["modprobe", driver], f"kernel module {driver}", remedy)


def begin(
    plan: Plan, lasting: Mapping[str, Binding], units: Iterable[str], journal: Journal, paths: Paths
) -> Operation:
    """Write down what is about to be done; return the Operation.

    :param lasting: {address: Binding} of what is to be bound at each boot.
    :param units: services that are to be stopped for it.
    """
    rules, touched = read(paths), {*(device.address for device in plan.chosen), *plan.gone}
    operation = Operation(
        boot=journal.boot,
        driver=plan.driver,
        devices={device.address: dict(driver=device.driver, override=device.override) for device in plan.chosen},
        rules={address: rules[address]._asdict() if address in rules else None for address in sorted(touched)},
        units=list(units),
    )
    journal.open(operation)
    try:
        write(lasting, paths)
        for unit in operation.units:
            command(["systemctl", "stop", unit], unit, "see: systemctl status")
    except HeteroError as error:
        raise _undone(operation, error, journal, paths) from error
    return operation


def carry_out(operation: Operation, journal: Journal, paths: Paths, deadline: Deadline) -> list[str]:
    """Bring each device to the driver; return the addresses that their driver has not released yet.

    :raises StepFailed: one could not be brought there, and those before it are back as they were.
    """
    try:
        for address in operation.devices:
            if not _move(address, operation, journal, paths, deadline):
                return [address]
    except HeteroError as error:
        raise _undone(operation, error, journal, paths) from error
    journal.close(operation)
    return []


def settle(
    operation: Operation, journal: Journal, paths: Paths, deadline: Deadline, say: Callable[[str], object]
) -> bool:
    """Finish what an earlier run left; return whether it is finished.

    :param say: is called with what was done.
    """
    if operation.boot != journal.boot:
        journal.close(operation)
        say(f"{operation.words} was not over when the machine went down; this boot began afresh")
        return True
    while operation.unbinding and waits(operation.unbinding, paths):
        if deadline.passed:
            return False
        deadline.nap()
    operation.unbinding = None
    try:
        if carry_out(operation, journal, paths, deadline):
            return False
    except StepFailed as error:
        if operation in journal.operations:
            raise
        say(f"{operation.words} was left by an earlier run, and is taken back: {error}")
        return True
    said = start_again(operation.units)
    say("; ".join([f"{operation.words} was left by an earlier run, and is done", *said]))
    return True


def start_again(units: Iterable[str]) -> list[str]:
    """Start services again; return what each says that does not start."""
    said = []
    for unit in units:
        done = ended(["systemctl", "start", unit], unit)
        if done.returncode:
            said.append(f"{unit} does not start again: {last_words(done)}")
    return said


def _move(address: str, operation: Operation, journal: Journal, paths: Paths, deadline: Deadline) -> bool:
    """Bring one device to the operation's driver; return False if its driver does not release it by the deadline."""
    device = sysfs.look(address, paths)
    while device is not None and device.changing:
        # any question about it would now wait in the kernel, too
        if deadline.passed:
            return False
        deadline.nap()
        device = sysfs.look(address, paths)
    if device is None:
        raise StepFailed("look", "was taken out of the machine", address, SEE)
    if settled(device, operation.driver):
        return True
    stub = None if operation.driver == DEFAULT else operation.driver
    _override(address, stub, paths)
    if must_leave(device, operation.driver) and not _unbound(address, operation, journal, paths, deadline):
        return False
    if stub is None:
        # a driver that nothing has needed yet is not loaded; one on the blacklist is not wanted
        ended(["modprobe", "--quiet", "--use-blacklist", device.modalias])
    _probe(device, stub, paths)
    _check(device, stub, paths)
    return True


def _probe(device: Device, stub: str | None, paths: Paths) -> None:
    try:
        _put(paths.probe, device.address, device.address)
    except StepFailed:
        if stub is None:
            _group_in_use(device, paths)
        raise


def _check(device: Device, stub: str | None, paths: Paths) -> None:
    address, found, override = device.address, driver_of(device.address, paths), override_of(device.address, paths)
    if override != stub:
        raise StepFailed("override", f"has driver_override {override} still", address, "see who else writes it")
    if stub is not None and found != stub:
        raise StepFailed("bind", f"is on {found or 'no driver'}, not on {stub}", address, SEE)
    if stub is None and found in sysfs.STUBS:
        remedy = f'write "{device.vendor_id} {device.product_id}" to /sys/bus/pci/drivers/{found}/remove_id'
        remedy += f", and take these ids out of /etc/modprobe.d (options {found} ids=)"
        raise StepFailed("bind", f"is on {found} again, which claims all devices of these ids", address, remedy)
    if stub is None and found is None:
        _group_in_use(device, paths)


def _group_in_use(device: Device, paths: Paths) -> None:
    """Raise StepFailed if a guest uses the device's group: the kernel then gives it no host driver, and only says
    "invalid".
    """
    numbers = {number for other in siblings(device, sysfs.devices(paths)) for number in vfio_nodes(other, paths)}
    users = [process for held in holders(sorted(numbers), paths).values() for process in held]
    if users:
        who = ", ".join(sorted({f"{process.command} (pid {process.pid})" for process in users}))
        what = f"gets no driver of the host's while {who} uses another device of its IOMMU group {device.group}"
        raise StepFailed("bind", what, device.address, "end that guest first")


def _undone(operation: Operation, error: HeteroError, journal: Journal, paths: Paths) -> StepFailed:
    """Put all devices back as they were; return the error that says so."""
    left = []
    for address, before in reversed(list(operation.devices.items())):
        try:
            _back(address, before, operation, journal, paths)
        except HeteroError as other:
            left.append(str(other))
    try:
        rules = read(paths)
        for address, fields in operation.rules.items():
            rules.pop(address, None)
            if fields is not None:
                rules[address] = Binding(**fields)
        write(rules, paths)
    except HeteroError as other:
        left.append(str(other))
    said = start_again(operation.units)
    if left:
        what = f"{error.what}; and not all could be put back: {'; '.join([*left, *said])}"
        return StepFailed("back", what, error.thing, error.remedy)
    journal.close(operation)
    what = "; ".join([f"{error.what}; all devices are as they were", *said])
    return StepFailed(getattr(error, "phase", "bind"), what, error.thing, error.remedy)


def _back(address: str, before: Mapping[str, str | None], operation: Operation, journal: Journal, paths: Paths) -> None:
    """Bring a device back to the driver that it had."""
    device = sysfs.look(address, paths)
    if device is None:
        return
    if device.changing:
        raise StepFailed("back", "is leaving its driver, which waits for somebody", address, "run pci_driver again")
    if device.override != before["override"]:
        _override(address, before["override"], paths)
    if device.driver == before["driver"]:
        return
    if not _unbound(address, operation, journal, paths, Deadline(BACK)):
        raise StepFailed("back", f"its driver has not let go of it in {BACK:g} s", address, "run pci_driver again")
    if before["driver"] is None:
        return
    _put(paths.driver(before["driver"], "bind"), address, address)
    if driver_of(address, paths) != before["driver"]:
        raise StepFailed("back", f"is not on {before['driver']} again", address, SEE)


def _unbound(address: str, operation: Operation, journal: Journal, paths: Paths, deadline: Deadline) -> bool:
    """Take a device from its driver, with the journal knowing of it from its begin on; return whether it is done."""

    def begun(unbinding: dict[str, Any]) -> None:
        operation.unbinding = unbinding
        journal.save()

    if not unbind(address, paths, deadline, begun):
        return False
    operation.unbinding = None
    return True


def _override(address: str, driver: str | None, paths: Paths) -> None:
    _put(paths.device(address, "driver_override"), f"{driver or ''}\n", address)


def _put(path: str, value: str, address: str) -> None:
    try:
        sysfs.put(path, value)
    except OSError as error:
        what = f"the kernel refuses {value.strip() or 'nothing'} in {path} ({error.strerror})"
        raise StepFailed("bind", what, address, SEE) from error
