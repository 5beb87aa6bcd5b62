# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wipe does not reach, by what a board's programs say. The programs themselves are in disk/test_areas.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_areas

ATA = """\
identity sda ATA device
identity sda Model Number: Atom
identity sda * Device Configuration Overlay feature set
identity sda Security:
identity sda not enabled
identity sda not locked
"""
SECTORS = "sectors sda max sectors = 1000/{}, HPA is\n"
OVERLAY = "overlay sda Real max sectors: {}\n"
FINE = f"{ATA}{SECTORS.format(1000)}{OVERLAY.format(1000)}"
NVME = "attached nvme0 1\ncontroller nvme0 unvmcap : {}\nspaces nvme0 [ 0]:0x1\n"


def areas(said, *devices):
    """(name, text) of what was found, and what was not looked for."""
    asked = []

    def run(argv, deadline):
        asked.append((argv, deadline))
        return said

    found, unseen = disk_areas.areas(SimpleNamespace(run=run), devices, "soon")
    assert asked == [(["sh", "-c", disk_areas.LOOK, "sh", *devices], "soon")]
    return [(area.name, area.text) for area in found], unseen


def test_an_ordinary_disk_hides_nothing():
    assert areas(f"block sda 2048 ATA -\n\n{FINE}", "/dev/sda") == ([], [])
    assert areas(NVME.format(0)) == ([], [])
    assert areas("") == ([], [])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (f"{ATA}{SECTORS.format(1001)}{OVERLAY.format(1001)}", ("sda-hpa", "1 sectors in a host protected area")),
        (f"{ATA}{SECTORS.format(1000)}{OVERLAY.format(1001)}", ("sda-dco", "1 sectors hidden by its configuration")),
        (
            FINE.replace("not enabled", "enabled"),
            ("sda-password", "the disk has a password which locks it when its power goes"),
        ),
        (FINE.replace("not locked", "locked"), ("sda-password", "the disk has a password and is locked")),
        (NVME.format(5 << 20), ("nvme0-unallocated", "5 MB in no namespace")),
        (NVME.format(0) + "spaces nvme0 [ 1]:0x1f\n", ("nvme0-nsid31", "a namespace that is not attached")),
        (NVME.format(0) + "spaces nvme0 [ 1]: 12\n", ("nvme0-nsid12", "a namespace that is not attached")),
        ("block sdb 4096 - -\n", ("sdb", "2 MB that are no disk of the board's wiring")),
        ("block sdb 4096 - naa.2\n", ("sdb", "2 MB that are no disk of the board's wiring")),
        ("rpmb mmcblk0rpmb\n", ("mmcblk0rpmb", "an eMMC's RPMB, which a tenant can write")),
    ],
)
def test_where_a_tenant_may_have_left_something(said, found):
    """Lost: what a tenant put there, to the next one."""
    assert areas(f"block sda 2048 ATA naa.1\n{said}", "/dev/sda") == ([found], [])


def test_a_disk_has_one_place_and_may_have_two_ways():
    """Lost: a board whose disk is seen twice; or another disk, where neither says who it is."""
    said = "block sda 2048 ATA naa.1\nblock sdc 2048 ATA naa.1\n"
    assert areas(said, "/dev/sda") == ([], [])
    assert [name for name, _text in areas(said.replace("naa.1", "-"), "/dev/sda")[0]] == ["sdc"]
    assert areas(said, "/dev/sdx")[0][0][0] == "sda"


@pytest.mark.parametrize(
    ("said", "unseen"),
    [
        ("lacks hdparm sda\n", ["HPA, DCO and password of sda (the RAM image has no hdparm)"]),
        ("lacks nvme nvme0\n", ["namespaces that are not attached of nvme0 (the RAM image has no nvme)"]),
        (
            FINE.replace("1000/1000", "1001/1000").replace("Real max sectors: 1000", "Real max sectors: 2000"),
            ["HPA of sda (hdparm -N said: max sectors = 1001/1000, HPA is)"],
        ),
        (f"{ATA}{OVERLAY.format(5)}", ["HPA of sda (hdparm -N said: nothing)"]),
        (
            f"{ATA}{SECTORS.format(1000)}overlay sda dco: failed\n",
            ["DCO of sda (hdparm --dco-identify said: dco: failed)"],
        ),
        ("identity sda failed\n" + SECTORS.format(1000), ["password of sda (hdparm -I said: failed)"]),
        ("identity sda Model Number: x\n" + SECTORS.format(1000), []),
        (
            "spaces nvme0 odd\n",
            [
                "namespaces of nvme0 (nvme list-ns said: odd)",
                "capacity in no namespace of nvme0 (nvme id-ctrl said: nothing)",
            ],
        ),
    ],
)
def test_what_was_not_looked_for_is_said(said, unseen):
    """Lost: that nobody looked, in a proof that is taken for more than it is."""
    assert areas(said, "/dev/sda") == ([], unseen)


def test_an_area_in_words_and_in_a_record():
    """Lost: what can be done about it; and what was left out of a wipe, in its record."""
    area = disk_areas.Area("sda-hpa", "5 sectors", "hdparm -N")
    assert str(area) == "sda-hpa (5 sectors; hdparm -N)"
    assert area.record == dict(name="sda-hpa", text="5 sectors", remedy="hdparm -N")
