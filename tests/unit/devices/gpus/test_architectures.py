# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user who asks for a kepler gets another chip, or is told that there is none.

Tests devices/gpus/overrides.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import architectures
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.overrides import Overrides

#: Of Debian's package pci.ids.
PCI_IDS = Path("/usr/share/misc/pci.ids")
CHIPS = {
    "GF": "fermi", "GK": "kepler", "GM": "maxwell", "GP": "pascal", "GV": "volta", "TU": "turing", "GA": "ampere",
    "AD": "ada", "GH": "hopper", "GB": "blackwell",
}  # fmt: skip
#: Functions of a card besides its GPU, which have ids of their own.
BESIDES = re.compile("audio|usb|uscsi|ucsi|bridge|switch|serial|i2c", re.I)


def listed():
    """(device id, name, architecture) of each GPU that the system's list names."""
    text = PCI_IDS.read_text(encoding="utf-8", errors="replace")
    of_nvidia = re.search(r"^10de .*\n((?:[\t#].*\n)+)", text, re.M)[1]
    named = re.findall(r"^\t([0-9a-f]{4})  ((G[FKMPVAHB]|TU|AD)[0-9]{2,3}.*)", of_nvidia, re.M)
    return [(int(number, 16), name, CHIPS[chip]) for number, name, chip in named if not BESIDES.search(name)]


def test_each_gpu_that_the_systems_list_names_has_the_architecture_of_its_chip():
    gpus = listed()
    assert len(gpus) > 500
    wrong = [f"{number:04x} {name}" for number, name, arch in gpus if architectures.of(number) != arch]
    assert wrong == []


#: Ends of the table's ranges that the system's list does not name.
NEWER = {
    "kepler": [0x11FF, 0x130B],
    "pascal": [0x15C2, 0x15FF],
    "maxwell": [0x1613, 0x1676],
    "ampere": [0x2080, 0x20FF],
    "hopper": [0x23F0],
    "ada": [0x28F8],
    "blackwell": [0x2900, 0x29F1, 0x2B85, 0x2F58, 0x3180, 0x3340],
}


@pytest.mark.parametrize(("number", "arch"), [(number, arch) for arch, ids in NEWER.items() for number in ids])
def test_gpus_that_the_systems_list_does_not_know_yet(number, arch):
    """The newest GPUs are those that are asked for."""
    assert architectures.of(number) == arch


def test_no_chip_is_said_of_an_id_beyond_those_that_are_known():
    """Lost: who has a chip that no list knows yet is told a guess, and a flavor may be given the wrong one."""
    known = {number for number, _name, _arch in listed()}.union(*NEWER.values())
    ends = {end for first, last, _arch in architectures.RANGES for end in (first, last)}
    assert sorted(map(hex, ends - known)) == []


def test_what_the_table_does_not_know_is_nothing():
    assert architectures.of(0x0001) is None
    assert architectures.of(0xFFFF) is None


def test_an_operator_may_name_each_of_them():
    """Lost: the word of an operator whose GPU is newer than the table, for a chip that is in it."""
    for name in CHIPS.values():
        given = Overrides({"0000:05:00.0": name})
        assert given.of(address="0000:05:00.0") == {"arch": name}
    assert tuple(CHIPS.values()) == architectures.NAMES, "the oldest first, as errors list them"
