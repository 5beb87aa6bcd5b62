# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of bindings is about to do and how things were before, on disk before the first write to a device.

From it the next run, or the next boot, finishes what a killed run or an unbind that waits has left. change_steps.py
does the work.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List

from ...core.errors import HeteroError, naming
from ...files.whole_file import write_whole
from .sysfs import text

if TYPE_CHECKING:
    from .paths import Paths


@dataclass
class Operation:
    """One change of bindings: what was asked for, and what there was before.

    :param boot: the kernel's id of the boot in which it began.
    :param driver: vfio-pci, pci-stub or default.
    :param devices: address → driver and override before.
    :param rules: address → the fields of its lasting binding before, or None.
    :param unbinding: address, pid and start time of the process that waits for the kernel to release a device.
    :param units: services that were stopped for it and are to be started again.
    """

    boot: str
    driver: str
    devices: Dict[str, Dict[str, str | None]]
    rules: Dict[str, Dict[str, str] | None] = field(default_factory=dict)
    unbinding: Dict[str, Any] | None = None
    units: List[str] = field(default_factory=list)
    time: float = field(default_factory=time.time)

    @property
    def words(self) -> str:
        return f"{', '.join(self.devices)} to {self.driver}"


class Journal:
    """The operations that are not finished."""

    def __init__(self, paths: Paths) -> None:
        self.path = paths.journal
        self.boot = text(os.path.join(paths.proc, "sys/kernel/random/boot_id"))
        self.operations = self._read()

    def _read(self) -> list[Operation]:
        try:
            with open(self.path, encoding="utf-8") as file:
                return [Operation(**fields) for fields in json.load(file)["operations"]]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError, KeyError) as error:
            what = f"is no journal of bindings ({error})"
            remedy = "compare with pci_info what each card is bound to, and remove the file"
            raise HeteroError(what, self.path, remedy) from error

    def open(self, operation: Operation) -> None:
        self.operations.append(operation)
        self.save()

    def close(self, operation: Operation) -> None:
        self.operations.remove(operation)
        self.save()

    def save(self) -> None:
        """Write the operations to the disk; they survive a power cut when this returns."""
        with naming(self.path):
            if not self.operations:
                if os.path.exists(self.path):
                    os.unlink(self.path)
                return
            os.makedirs(os.path.dirname(self.path), mode=0o755, exist_ok=True)
            shown = json.dumps(dict(operations=[asdict(operation) for operation in self.operations]), indent=1)
            write_whole(self.path, shown + "\n", 0o600)
