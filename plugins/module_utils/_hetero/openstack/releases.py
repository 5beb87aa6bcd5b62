# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova's releases, and the names by which each reads its PCI options.

The first name is the one that the release wants. Each line under any of the names counts for a multi-valued option. The
tables come from nova/conf/ and setup.cfg of each release's tag.
"""

from __future__ import annotations

from ..core.errors import BadInput
from .config_files import DEFAULT, Name

#: Code names. Havana (2013.2), the first with PCI passthrough, is 8; from Liberty on these are Nova's own numbers.
NAMES = (
    *("havana", "icehouse", "juno", "kilo", "liberty", "mitaka", "newton", "ocata", "pike", "queens", "rocky", "stein"),
    *("train", "ussuri", "victoria", "wallaby", "xena", "yoga", "zed", "antelope", "bobcat", "caracal", "dalmatian"),
    *("epoxy", "flamingo", "gazpacho"),
)
FIRST, NEWEST = 8, 34
OCATA, ROCKY, WALLABY, ZED, ANTELOPE = 15, 18, 23, 26, 27

ALIAS, DEVICE_SPEC = "alias", "device_spec"
ENABLED, AVAILABLE = "enabled_filters", "available_filters"
#: With it Placement chooses the devices, and PciPassthroughFilter only looks at that choice.
IN_PLACEMENT = "pci_in_placement"
#: Options of which each line counts. Of ENABLED the last line counts, with commas between its names.
MULTI = (ALIAS, DEVICE_SPEC, AVAILABLE)

#: Option → [(section, name), first release and last release that read it].
_READ: dict[str, list[tuple[Name, int, int | None]]] = {
    ALIAS: [(("pci", "alias"), OCATA, None), ((DEFAULT, "pci_alias"), FIRST, None)],
    DEVICE_SPEC: [
        (("pci", "device_spec"), ZED, None),
        (("pci", "passthrough_whitelist"), OCATA, None),
        ((DEFAULT, "pci_passthrough_whitelist"), FIRST, None),
    ],
    ENABLED: [
        (("filter_scheduler", ENABLED), OCATA, None),
        ((DEFAULT, "scheduler_default_filters"), FIRST, WALLABY),
    ],
    AVAILABLE: [
        (("filter_scheduler", AVAILABLE), OCATA, None),
        ((DEFAULT, "scheduler_available_filters"), FIRST, WALLABY),
    ],
    IN_PLACEMENT: [(("filter_scheduler", IN_PLACEMENT), ANTELOPE, None)],
}


def number(text: str | int) -> int:
    """Return the number of a release that is given by number or name; raise BadInput for another text."""
    word = str(text).strip().lower()
    if word in NAMES:
        return FIRST + NAMES.index(word)
    major = word.partition(".")[0]
    if major.isdigit() and FIRST <= int(major) <= NEWEST:
        return int(major)
    raise BadInput(
        f"{text} is no release of Nova with PCI passthrough", "release", f"give {FIRST} to {NEWEST}, or a name"
    )


def names(option: str, release: int) -> list[Name]:
    """Return the (section, name) pairs by which a release reads an option, first the one that it wants."""
    return [name for name, first, last in _READ[option] if first <= release and (last is None or release <= last)]


def unread(option: str, release: int) -> list[Name]:
    """Return names that older releases read and this one silently ignores."""
    return [name for name, _first, last in _READ[option] if last is not None and last < release]


def reads_drop_ins(release: int) -> bool:
    """Return whether a service reads nova.conf.d by default (oslo.config does since Ocata)."""
    return release >= OCATA
