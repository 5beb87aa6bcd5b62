# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which architecture an NVIDIA GPU has, by its PCI device id. What the operator says comes first."""

from __future__ import annotations

#: The names, oldest first; what flavors ask for with gpu_arch.
NAMES = ("fermi", "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")

#: First and last device id of a run of ids with chips of one architecture (GF: fermi, GK: kepler, GM: maxwell,
#: GP: pascal, GV: volta, TU: turing, GA: ampere, AD: ada, GH: hopper, GB: blackwell). Source: pci.ids 2026.08.22,
#: https://pci-ids.ucw.cz, vendor 10de: each run goes from the first to the last id that the list names.
RANGES = (
    (0x06C0, 0x06DF, "fermi"),
    (0x0DC0, 0x0DFC, "fermi"),
    (0x0E22, 0x0F06, "fermi"),
    (0x0FC0, 0x103F, "kepler"),
    (0x1040, 0x109B, "fermi"),
    (0x1140, 0x1140, "fermi"),
    (0x1180, 0x11FF, "kepler"),
    (0x1200, 0x1251, "fermi"),
    (0x1280, 0x130B, "kepler"),
    (0x1340, 0x1436, "maxwell"),
    (0x15C2, 0x15FF, "pascal"),
    (0x1613, 0x1676, "maxwell"),
    (0x1725, 0x172F, "pascal"),
    (0x174D, 0x17FD, "maxwell"),
    (0x1B00, 0x1D56, "pascal"),
    (0x1D81, 0x1DF6, "volta"),
    (0x1E02, 0x1FF9, "turing"),
    (0x2080, 0x20FF, "ampere"),
    (0x2182, 0x21D1, "turing"),
    (0x2200, 0x223F, "ampere"),
    (0x2302, 0x23F0, "hopper"),
    (0x2414, 0x25FB, "ampere"),
    (0x2681, 0x28F8, "ada"),
    (0x2900, 0x29F1, "blackwell"),
    (0x2B85, 0x2F58, "blackwell"),
    (0x3180, 0x3340, "blackwell"),
)


def of(device_id: int) -> str | None:
    """Return the architecture of the NVIDIA GPU with this PCI device id, or None if the table does not have it."""
    for first, last, name in RANGES:
        if first <= device_id <= last:
            return name
    return None
