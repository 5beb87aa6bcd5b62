# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova's releases, and by which names each reads its PCI options. The first name is the one that it wants; a
multi-valued option given by several of them counts as often.

Taken from nova/conf/ and setup.cfg of each release's tag.
"""

from __future__ import annotations

from ..core.errors import BadInput
from .config_files import DEFAULT, Name

#: Code names, Havana (2013.2), the first with PCI passthrough, being 8; from Liberty on these numbers are Nova's own.
NAMES = (
    *("havana", "icehouse", "juno", "kilo", "liberty", "mitaka", "newton", "ocata", "pike", "queens", "rocky", "stein"),
    *("train", "ussuri", "victoria", "wallaby", "xena", "yoga", "zed", "antelope", "bobcat", "caracal", "dalmatian"),
    *("epoxy", "flamingo", "gazpacho"),
)
FIRST, NEWEST = 8, 34
OCATA, ROCKY, WALLABY, ZED, ANTELOPE = 15, 18, 23, 26, 27

ALIAS, DEVICE_SPEC = "alias", "device_spec"
ENABLED, AVAILABLE = "enabled_filters", "available_filters"
#: Placement chooses the devices, and PciPassthroughFilter looks at its choice only.
IN_PLACEMENT = "pci_in_placement"
#: Options of which each line counts; of ENABLED the last line does, and holds names with commas between.
MULTI = (ALIAS, DEVICE_SPEC, AVAILABLE)

#: option → [(section, name), first release, last release that reads it]
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
    """A release's number, of its number or its name."""
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
    """(section, name) by which a release reads an option, the one it wants first."""
    return [name for name, first, last in _READ[option] if first <= release and (last is None or release <= last)]


def unread(option: str, release: int) -> list[Name]:
    """Names that older releases read, and this one silently does not."""
    return [name for name, _first, last in _READ[option] if last is not None and last < release]


def reads_drop_ins(release: int) -> bool:
    """Whether a service looks into nova.conf.d without being told to (oslo.config does since Ocata)."""
    return release >= OCATA
