# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One request to change bindings, from its parameters to its result. change_plan.py decides what is done and whether it
may be, change_steps.py does it, and persistence.py keeps it over a boot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping, Sequence

from ...core.command import ended
from ...core.deadline import Deadline
from ...core.locks import lock
from . import sysfs
from .change_plan import DEFAULT, Plan, must_leave, plan, refuse, settled
from .change_steps import begin, carry_out, load, settle, start_again
from .groups import siblings
from .holders import Holder, holders
from .journal import Journal
from .paths import LOCK
from .persistence import Binding, read

if TYPE_CHECKING:
    from typing import Callable

    from ...core.changes import Change
    from .journal import Operation
    from .paths import Paths
    from .sysfs import Device


def change_driver(
    asked: Mapping[str, Any],
    change: Change,
    deadline: Deadline,
    paths: Paths,
    of_containers: Callable[[Collection[str]], Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Do what was asked for; return the module's result without its diff.

    :param asked: dict of devices, driver, persistent (None: what is bound at each boot stays), force; and `holder`, if
        it is done for that holder's own allocation.
    :param change: gets each device's fields before and after.
    :param of_containers: called with addresses for {address: in words, which container has it}, beside the table.
    """
    names, driver = asked["devices"], asked["driver"]
    with lock(paths.run_folder, LOCK, "pci_driver", "pci_driver", deadline):
        journal, notes, rules = Journal(paths), [], read(paths)
        first, held = plan(names, driver, sysfs.devices(paths), rules), {}
        with change.step("earlier"):
            if journal.operations:
                # asked now, because after the deadline nothing may be waited for any more
                held, _domains = holders(first.chosen, paths)
            left = [] if change.check else _earlier(first, journal, paths, deadline, notes.append)
        with change.step("look"):
            bindings = read(paths)
            planned = plan(names, driver, sysfs.devices(paths), bindings)
            lasting = _lasting(planned, bindings, asked["persistent"])
            waiting = _waiting(planned, left)
            if not waiting:
                held, _domains = holders(planned.moving, paths, asked.get("holder"))
                _add(held, of_containers([*held]) if of_containers and held else {})
                refuse(planned, held, asked["force"])
        with change.step("bind"):
            if (planned.todo or lasting != bindings) and not waiting and not change.check:
                waiting = _bind(planned, lasting, held, journal, paths, deadline, notes)
        after, kept = _after(planned, waiting, change.check, paths), lasting if change.check else read(paths)
    for device in first.chosen:
        before = dict(driver=device.driver, driver_override=device.override, at_boot=_driver(device.address, rules))
        change.note(device.address, before, dict(after[device.address], at_boot=_driver(device.address, kept)))
    for address in first.gone:
        change.note(address, dict(at_boot=_driver(address, rules)), dict(at_boot=_driver(address, kept)))
    shown = [_shown(device, planned, after, waiting, kept) for device in first.chosen]
    failed = dict(failed=True, msg=_still(waiting, held, deadline)) if waiting else {}
    return dict(devices=shown, pending=sorted(waiting), notes=notes, **failed)


def _add(held: Mapping[str, list[Holder]], of_containers: Mapping[str, str]) -> None:
    """Add the containers that have devices which the table gives to nobody."""
    for address, holders_of in held.items():
        if address in of_containers and not any(one.kind == "allocation" for one in holders_of):
            holders_of.append(Holder(address, "allocation", of_containers[address]))


def _shown(
    device: Device,
    planned: Plan,
    after: Mapping[str, Mapping[str, str | None]],
    waiting: Collection[str],
    kept: Mapping[str, Binding],
) -> dict[str, Any]:
    return dict(
        address=device.address,
        vendor_id=device.vendor_id,
        product_id=device.product_id,
        before=device.driver,
        after=after[device.address]["driver"],
        group=device.group,
        siblings=[other.address for other in siblings(device, planned.devices)],
        pending=device.address in waiting,
        persistent=_driver(device.address, kept),
    )


def _driver(address: str, bindings: Mapping[str, Binding]) -> str | None:
    return bindings[address].driver if address in bindings else None


def _earlier(
    first: Plan, journal: Journal, paths: Paths, deadline: Deadline, say: Callable[[str], None]
) -> list[Operation]:
    """Finish what earlier runs left; return the operations that still wait for a driver to release a device.

    Only operations on devices of this request are waited for.
    """
    ours, left = {device.address for device in first.chosen}, []
    for operation in list(journal.operations):
        limit = deadline if ours & set(operation.devices) else Deadline(0)
        if not settle(operation, journal, paths, limit, say):
            left.append(operation)
    return left


def _waiting(planned: Plan, left: Iterable[Operation]) -> set[str]:
    """Return the addresses of this request for which an earlier operation still waits."""
    ours = {device.address for device in planned.chosen}
    return {address for operation in left for address in operation.devices if address in ours}


def _bind(
    planned: Plan,
    lasting: Mapping[str, Binding],
    held: Mapping[str, Sequence[Holder]],
    journal: Journal,
    paths: Paths,
    deadline: Deadline,
    notes: list[str],
) -> set[str]:
    if planned.driver != DEFAULT:
        load(planned.driver)
    units = sorted({holder.unit for those in held.values() for holder in those if holder.unit})
    operation = begin(planned, lasting, units, journal, paths)
    left = carry_out(operation, journal, paths, deadline)
    notes += start_again(units)
    return set(left)


def _lasting(planned: Plan, bindings: dict[str, Binding], persistent: bool | None) -> dict[str, Binding]:
    """Return what is to be bound at each boot after the plan is done."""
    if persistent is None:
        return bindings
    found = {address: binding for address, binding in bindings.items() if address not in planned.gone}
    for device in planned.chosen:
        found.pop(device.address, None)
        if persistent and planned.driver != DEFAULT:
            found[device.address] = Binding(device.address, device.vendor_id, device.product_id, planned.driver)
    return found


def _after(planned: Plan, waiting: Collection[str], check: bool, paths: Paths) -> dict[str, dict[str, str | None]]:
    """Return {address: driver and override} as they are now, or in check mode as they would be."""
    found = {}
    for device in planned.chosen:
        if device.address in waiting:
            # reading its override would make this process wait, too
            driver, override = sysfs.driver_of(device.address, paths), device.override
        elif check and not settled(device, planned.driver):
            driver, override = _expected(device, planned.driver)
        else:
            now = device if check else sysfs.look(device.address, paths) or device
            driver, override = now.driver, now.override
        found[device.address] = dict(driver=driver, driver_override=override)
    return found


def _expected(device: Device, driver: str) -> tuple[str | None, str | None]:
    """Return (driver, override) of a device after a plan is done."""
    if driver != DEFAULT:
        return driver, driver
    wanted = must_leave(device, driver) or device.driver is None
    if wanted and not _has_driver(device):
        return None, None
    return DEFAULT if wanted else device.driver, None


def _has_driver(device: Device) -> bool:
    """Return whether the host has a module for the device besides the stubs."""
    modules = ended(["modprobe", "--quiet", "--resolve-alias", device.modalias]).stdout.split()
    return bool(set(modules) - {stub.replace("-", "_") for stub in sysfs.STUBS})


def _still(waiting: Collection[str], held: Mapping[str, Sequence[Holder]], deadline: Deadline) -> str:
    """Return a note on devices that their driver has not released."""
    who = "; ".join(f"{address}: {one.text}" for address in sorted(waiting) for one in held.get(address, ()))
    who = f" ({who})" if who else ""
    return (
        f"{', '.join(sorted(waiting))}: the driver has not let go within {deadline.seconds:g} s{who}, and that can "
        "neither be ended nor taken back: end who has it, then run this again, which finishes it"
    )
