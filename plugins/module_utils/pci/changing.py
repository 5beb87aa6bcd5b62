# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One request to change bindings, from its words to what was found afterwards. The parts are binding.py's (what, and
whether), applying.py's (how) and persistence.py's (for good).
"""

from __future__ import annotations

from ..command import ended
from ..locks import lock
from . import sysfs
from .applying import begin, carry_out, load, settle, start_again
from .binding import DEFAULT, Plan, must_leave, plan, refuse, settled
from .groups import siblings
from .holders import holders
from .journal import Journal
from .paths import LOCK
from .persistence import Binding, read


def change_driver(asked, change, deadline, paths):
    """Do what was asked for; the module's result but for its diff.

    :param asked: devices, driver, persistent, force.
    :param change: a Change, which gets each device's fields before and after.
    """
    with lock(paths.run_folder, LOCK, "pci_driver", "pci_driver", deadline):
        journal, notes = Journal(paths), []
        with change.step("earlier"):
            left = [] if change.check else _earlier(journal, paths, deadline, notes.append)
        with change.step("look"):
            devices, bindings = sysfs.devices(paths), read(paths)
            planned = plan(asked["devices"], asked["driver"], devices, bindings)
            lasting = _lasting(planned, bindings, asked["persistent"])
            waiting = _waiting(planned, left)
            if not waiting:
                held, _domains = holders(planned.moving, paths)
                refuse(planned, held, asked["force"])
        todo = bool(planned.todo) or lasting != bindings
        with change.step("bind"):
            if todo and not waiting and not change.check:
                waiting = _bind(planned, lasting, held, journal, paths, deadline, notes)
        after = _after(planned, waiting, change.check, paths)
        rules = lasting if change.check else read(paths)
    shown = [
        dict(
            address=device.address,
            vendor_id=device.vendor_id,
            product_id=device.product_id,
            before=device.driver,
            after=after[device.address]["driver"],
            group=device.group,
            siblings=[other.address for other in siblings(device, devices)],
            pending=device.address in waiting,
            persistent=rules[device.address].driver if device.address in rules else None,
        )
        for device in planned.chosen
    ]
    for device in planned.chosen:
        before = dict(driver=device.driver, driver_override=device.override)
        change.note(
            device.address, _with(before, device.address, bindings), _with(after[device.address], device.address, rules)
        )
    for address in planned.gone:
        change.note(address, _with({}, address, bindings), _with({}, address, rules))
    result = dict(devices=shown, pending=sorted(waiting), notes=notes)
    if waiting:
        result.update(failed=True, msg=_still(waiting, deadline, paths))
    return result


def _earlier(journal, paths, deadline, say):
    """End what earlier runs have left; the operations that still wait for a driver to let go."""
    return [operation for operation in list(journal.operations) if not settle(operation, journal, paths, deadline, say)]


def _waiting(planned, left):
    """Addresses of this request that an earlier one still waits for, with all of its devices' groups."""
    ours = {device.address for device in planned.chosen}
    return {address for operation in left for address in operation.devices if address in ours}


def _bind(planned, lasting, held, journal, paths, deadline, notes):
    if planned.driver != DEFAULT:
        load(planned.driver)
    units = sorted({holder.unit for those in held.values() for holder in those if holder.unit})
    operation = begin(planned, lasting, units, journal, paths)
    left = carry_out(operation, journal, paths, deadline)
    notes += start_again(units)
    return set(left)


def _lasting(planned: Plan, bindings, persistent):
    """What is to be bound at each boot once the plan is done."""
    found = {address: binding for address, binding in bindings.items() if address not in planned.gone}
    for device in planned.chosen:
        found.pop(device.address, None)
        if persistent and planned.driver != DEFAULT:
            found[device.address] = Binding(device.address, device.vendor_id, device.product_id, planned.driver)
    return found


def _after(planned, waiting, check, paths):
    """{address: driver and override} now; in check mode, as they would be."""
    found = {}
    for device in planned.chosen:
        now = device
        if not check:
            now = sysfs.look(device.address, paths) or device
        elif device.address not in waiting and not settled(device, planned.driver):
            found[device.address] = _expected(device, planned.driver)
            continue
        found[device.address] = dict(driver=now.driver, driver_override=now.override)
    return found


def _expected(device, driver):
    if driver != DEFAULT:
        return dict(driver=driver, driver_override=driver)
    wanted = must_leave(device, driver) or device.driver is None
    if wanted and not _has_driver(device):
        return dict(driver=None, driver_override=None)
    return dict(driver=DEFAULT if wanted else device.driver, driver_override=None)


def _has_driver(device):
    """Whether the host has a module for the device besides the stubs."""
    modules = ended(["modprobe", "--quiet", "--resolve-alias", device.modalias]).stdout.split()
    return bool(set(modules) - {stub.replace("-", "_") for stub in sysfs.STUBS})


def _with(fields, address, bindings):
    return dict(fields, at_boot=bindings[address].driver if address in bindings else None)


def _still(waiting, deadline, paths):
    """What to say of devices whose driver has not let go."""
    devices = {address: device for address, device in sysfs.devices(paths).items() if address in waiting}
    held, _domains = holders(list(devices.values()), paths)
    who = "; ".join(f"{address}: {holder.text}" for address in sorted(held) for holder in held[address])
    return (
        f"{', '.join(sorted(waiting))}: the driver has not let go within {deadline.seconds:g} s, and that can neither be "
        f"ended nor taken back{' (' + who + ')' if who else ''}: end who has it, then run this again, which finishes it"
    )
