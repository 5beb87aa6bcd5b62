# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a device from its driver. The kernel waits until the driver releases it: seconds, or hours.

The write to `unbind` is done by a process of its own, because it can be neither timed out nor taken back. Its starter
waits as long as it likes; the process ends with the kernel's answer.
"""

from __future__ import annotations

import errno
import os
import select
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ...core.errors import StepFailed
from . import sysfs
from .detached_work import detached, started
from .sysfs import driver_of

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .paths import Paths


def unbind(address: str, paths: Paths, deadline: Deadline, begun: Callable[[dict[str, Any]], None]) -> bool:
    """Take a device from its driver.

    :param begun: is called with {address, pid, started} of the process before it writes anything.
    :returns: whether it is done. If not, the process goes on by itself.
    :raises StepFailed: the kernel refused.
    """
    driver = driver_of(address, paths)
    if driver is None:
        return True
    path = paths.driver(driver, "unbind")
    go, start = os.pipe()

    def work(tell: Callable[[bytes], object]) -> None:
        if os.read(go, 1) == b"x":
            tell(str(_refused(path, address)).encode())

    child, answer = detached(work, keep=[go])
    os.close(go)
    try:
        begun(dict(address=address, pid=child, started=started(child, paths.proc)))
        os.write(start, b"x")
        ready = select.select([answer], [], [], deadline.left)[0]
        said = os.read(answer, 16) if ready else b""
    finally:
        os.close(start)
        os.close(answer)
    if not ready:
        return False
    os.waitpid(child, 0)
    if said.isdigit() and int(said):
        what = f"{driver} does not let go of it ({os.strerror(int(said))})"
        raise StepFailed("unbind", what, address, sysfs.SEE)
    if driver_of(address, paths) == driver:
        raise StepFailed("unbind", f"is on {driver} still, although it was unbound", address, sysfs.SEE)
    return True


def waits(unbinding: Mapping[str, Any], paths: Paths) -> bool:
    """Return whether a process that `unbind` left behind still waits."""
    began = started(unbinding["pid"], paths.proc)
    return began is not None and began == unbinding["started"]


def _refused(path: str, address: str) -> int:
    """Return the kernel's error number, or 0 if it did it."""
    try:
        sysfs.put(path, address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
