# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking a device from its driver, which the kernel does only when the driver lets go: seconds, or hours.

The write to `unbind` is a process of its own, for it can be neither timed out nor taken back. Whoever started it waits
as long as it likes; the process goes on and ends with the kernel's answer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select

from ..errors import StepFailed
from . import sysfs
from .sysfs import driver_of


def unbind(address, paths, deadline, begun):
    """Take a device from its driver.

    :param begun: called with {address, pid, started} of the process before that writes anything.
    :returns: whether it is done; else the process goes on by itself.
    :raises StepFailed: the kernel refused.
    """
    driver = driver_of(address, paths)
    if driver is None:
        return True
    answer, told = os.pipe()
    go, start = os.pipe()
    child = os.fork()
    if child == 0:
        _child(paths.driver(driver, "unbind"), address, go, told)
    os.close(told)
    os.close(go)
    try:
        begun(dict(address=address, pid=child, started=_started(child, paths)))
        os.write(start, b"x")
    finally:
        os.close(start)
    ready = select.select([answer], [], [], deadline.left)[0]
    said = os.read(answer, 16) if ready else b""
    os.close(answer)
    if not ready:
        return False
    os.waitpid(child, 0)
    if said.isdigit() and int(said):
        remedy = "see the kernel's log (dmesg)"
        raise StepFailed("unbind", f"{driver} does not let go of it ({os.strerror(int(said))})", address, remedy)
    if driver_of(address, paths) == driver:
        raise StepFailed("unbind", f"is on {driver} still, although it was unbound", address, "see dmesg")
    return True


def waits(unbinding, paths):
    """Whether a process that `unbind` has left behind is still at it."""
    started = _started(unbinding["pid"], paths)
    return started is not None and started == unbinding["started"]


def _started(pid, paths):
    """When a process began, in the kernel's ticks: a number that is used again began later. None where it has ended."""
    try:
        with open(os.path.join(paths.proc, str(pid), "stat"), encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])  # proc(5): fields 3 and 22


def _child(path, address, go, told):
    """Ends the process, whatever happens. Nothing of its starter stays open in it: Ansible waits for its files' end."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in [int(name) for name in os.listdir("/proc/self/fd")]:
            if number > 2 and number not in (go, told):
                with contextlib.suppress(OSError):  # the one that the folder was read by
                    os.close(number)
        if os.read(go, 1) == b"x":
            os.write(told, str(_refused(path, address)).encode())
    finally:
        os._exit(0)


def _refused(path, address):
    """The kernel's answer, 0 where it did it."""
    try:
        sysfs.put(path, address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
