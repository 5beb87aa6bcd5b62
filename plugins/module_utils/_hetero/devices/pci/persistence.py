# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bindings that last over a boot: one udev rule for each device, by its address and ids, without another record.

An address alone would match another card after the machine's slots were renumbered, and ids alone all cards of a kind.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Mapping, NamedTuple

from ...core.command import command
from ...core.errors import HeteroError, naming
from ...files.whole_file import write_whole

if TYPE_CHECKING:
    from .paths import Paths
    from .sysfs import Device

HEADING = """\
# Written by hetero.compute.pci_driver, which takes lines out again. Each keeps a device from the host's driver: by its
# address, and only while its vendor and device are what they were.
"""
#: A rule sets the only driver that may take the device before any driver is loaded for it.
RULE = (
    'ACTION=="add", SUBSYSTEM=="pci", KERNEL=="{address}", '
    'ATTR{{vendor}}=="0x{vendor_id}", ATTR{{device}}=="0x{product_id}", '
    'ATTR{{driver_override}}="{driver}", RUN{{builtin}}+="kmod load {driver}"\n'
)
PARTS = dict(
    address=r"[0-9a-f:.]+",
    vendor_id=r"[0-9a-f]{4}",
    product_id=r"[0-9a-f]{4}",
    driver=r"[a-z-]+",
)


class Binding(NamedTuple):
    """A device and the driver that it is to have at each boot."""

    address: str
    vendor_id: str
    product_id: str
    driver: str

    @property
    def ids(self) -> str:
        return f"{self.vendor_id}:{self.product_id}"

    def fits(self, device: Device) -> bool:
        return (self.vendor_id, self.product_id) == (device.vendor_id, device.product_id)


def _pattern() -> re.Pattern[str]:
    """Return the regular expression of a rule, which names the same driver twice."""
    text = re.escape(RULE.strip()).replace(r"\{\{", r"\{").replace(r"\}\}", r"\}")
    for name, part in PARTS.items():
        text = text.replace(rf"\{{{name}\}}", f"(?P<{name}>{part})", 1).replace(rf"\{{{name}\}}", f"(?P={name})")
    return re.compile(text)


PATTERN = _pattern()


def read(paths: Paths) -> dict[str, Binding]:
    """Return {address: Binding} of udev's rules."""
    try:
        with naming(paths.rules), open(paths.rules, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except HeteroError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    found = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        match = PATTERN.fullmatch(line)
        if not match:
            what = f"line {number} was not written by pci_driver"
            raise HeteroError(what, paths.rules, "move it to a file of its own")
        binding = Binding(**match.groupdict())
        found[binding.address] = binding
    return found


def write(bindings: Mapping[str, Binding], paths: Paths) -> None:
    """Replace udev's rules by these bindings and reload udev; without bindings the file is removed."""
    if bindings == read(paths):
        return
    folder = os.path.dirname(paths.rules)
    with naming(paths.rules):
        if bindings:
            os.makedirs(folder, exist_ok=True)
            lines = [RULE.format(**bindings[address]._asdict()) for address in sorted(bindings)]
            write_whole(paths.rules, HEADING + "".join(lines), 0o644)
        else:
            os.unlink(paths.rules)
    if read(paths) != bindings:
        raise HeteroError("does not hold what was written to it", paths.rules, "see who else writes it")
    if os.path.exists(os.path.join(paths.run, "udev/control")):
        command(["udevadm", "control", "--reload"], remedy="see: systemctl status systemd-udevd")
