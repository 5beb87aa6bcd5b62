# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wipe does not reach: if these fail, a tenant hides what it likes from the wipe, and the next one finds it.

The programs in the RAM system say what the real ones do (hdparm 9.65, nvme-cli 2.3); /sys is a folder.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_areas

SECRET = b"a tenant's secret"

IDENTITY = """
/dev/sda:

ATA device, with non-removable media
\tModel Number:       WDC WD10EZEX-08WN4A0
Commands/features:
\tEnabled\tSupported:
\t   *\tSMART feature set
\t    \tSecurity Mode feature set
\t   *\tHost Protected Area feature set
\t   *\tDevice Configuration Overlay feature set
Security:
\tMaster password revision code = 65534
\t\tsupported
\tnot\tenabled
\tnot\tlocked
\t{not_}frozen
\tnot\texpired: security count
\t\tsupported: enhanced erase
Logical Unit WWN Device Identifier: 50014ee2b2b2b2b2
"""
SECTORS = """
/dev/sda:
 max sectors   = {}
"""
OVERLAY = """
/dev/sda:
DCO Revision: 0x0002
The following features can be selectively disabled via DCO:
\tTransfer modes:
\t\t mdma0 mdma1 mdma2
\tReal max sectors: {}
\tATA command/feature sets:
\t\t SMART self_test error_log security HPA 48_bit
"""
ALL = "1953525168/1953525168, HPA is disabled"


def hdparm(site, identity=IDENTITY, sectors=ALL, overlay=1953525168):
    """Board 0's disk is an ATA disk, its RAM system has hdparm."""
    shell = site.shells[0]
    shell.block("sda", vendor="ATA     ")
    for name, text in (("I", identity), ("N", SECTORS.format(sectors)), ("dco", OVERLAY.format(overlay))):
        (shell.folder / f"hdparm-{name}").write_text(text)
    here = shell.folder
    shell.program(
        "hdparm",
        f"""case $1 in
-I) cat {here}/hdparm-I ;;
-N) cat {here}/hdparm-N ;;
--dco-identify) cat {here}/hdparm-dco ;;
--user-master) echo "$*" >> {here}/hdparm-set; [ -e {here}/ours ] && cp {here}/unlocked {here}/hdparm-I ;;
esac""",
    )


def wiped(site, **wiring):
    """A wipe of board 0 after a tenant; its result, and whether the tenant's data is still there."""
    site.use(0)
    site.config["boards"]["0"].update(wiring)
    site.write()
    result = site.wipe(0)
    return result, SECRET in site.disk(0).read_bytes()


def test_nothing_hidden(disks):
    """An ordinary disk would be kept out of use."""
    hdparm(disks)
    result, left = wiped(disks)
    assert (result["failed"], left) == (False, False), result
    proof = result["boards"][0]["proof"]
    assert (proof["not_wiped"], proof["not_looked_for"]) == ([], [])


@pytest.mark.parametrize(
    ("what", "name", "text"),
    [
        (dict(sectors="1953523055/1953525168, HPA is enabled"), "sda-hpa", "2113 sectors in a host protected area"),
        (dict(overlay=1953525200), "sda-dco", "32 sectors hidden by its configuration"),
        (dict(identity=IDENTITY.replace("not\tenabled", "\tenabled")), "sda-password", "the disk has a password which"),
        (dict(identity=IDENTITY.replace("not\t", "\t")), "sda-password", "the disk has a password and is locked"),
    ],
)
def test_what_an_ata_disk_hides(disks, what, name, text):
    """Lost: what a tenant put into sectors that the disk does not show, or the disk, to its password."""
    hdparm(disks, **what)
    result, left = wiped(disks)
    assert f"board0: a wipe does not reach {name} ({text}" in result["msg"]
    assert f"accept_unwiped: [{name}]" in result["msg"]
    record = disks.record(0)
    assert (left, record.state, record.note[:13]) == (True, "shutting down", "not wiped yet")
    assert "not proven to be wiped" in disks.release(0)["msg"]
    disks.config["boards"]["0"]["accept_unwiped"] = [name]
    disks.write()
    again = disks.wipe(0)
    assert again["failed"] is False
    assert [area["name"] for area in again["boards"][0]["proof"]["not_wiped"]] == [name]
    assert any(line["text"].startswith(f"not wiped, accepted: {name}") for line in again["lines"])


def test_a_password_that_a_wipe_left(disks):
    """Lost: a board, to a power cut in its secure erase, which leaves the wipe's own password."""
    hdparm(disks, IDENTITY.replace("not\tenabled", "\tenabled").replace("not\tlocked", "\tlocked"))
    folder = disks.shells[0].folder
    (folder / "ours").write_text("")
    (folder / "unlocked").write_text(IDENTITY)
    result, left = wiped(disks)
    assert (result["failed"], left) == (False, False), result
    assert (folder / "hdparm-set").read_text().splitlines()[0].startswith("--user-master u --security-unlock hetero /")


@pytest.mark.parametrize(
    ("sectors", "identity", "text"),
    [
        (None, IDENTITY, "HPA, DCO and password of sda (the RAM image has no hdparm)"),
        ("18446744073321613488/14715056(18446744073321613488?), HPA setting seems invalid", IDENTITY, "HPA of sda ("),
        (ALL, "/dev/sda:\nSG_IO: bad/missing sense data", "password of sda (hdparm -I said: SG_IO: bad"),
    ],
)
def test_what_was_not_looked_for_is_said(disks, sectors, identity, text):
    """A proof that is silent where nobody looked would be taken for more than it is."""
    if sectors is None:
        disks.shells[0].block("sda", vendor="ATA")
        disks.shells[0].hide("hdparm")
    else:
        hdparm(disks, identity, sectors)
    result, left = wiped(disks)
    assert (result["failed"], left) == (False, False), result
    assert any(unseen.startswith(text) for unseen in result["boards"][0]["proof"]["not_looked_for"])
    assert any(line["text"].startswith(f"not looked for: {text}") for line in result["lines"])


def test_a_dco_that_is_frozen(disks):
    """A firmware that froze it hides whether a tenant used it."""
    hdparm(disks)
    (disks.shells[0].folder / "hdparm-dco").write_text(" HDIO_DRIVE_CMD(dco_identify) failed: Input/output error\n")
    unseen = wiped(disks)[0]["boards"][0]["proof"]["not_looked_for"]
    said = "HDIO_DRIVE_CMD(dco_identify) failed: Input/output error"
    assert unseen == [f"DCO of sda (hdparm --dco-identify said: {said})"]


def test_disks_that_nobody_named(disks):
    """Lost: what a tenant put on a second disk, an eMMC's boot partition or another namespace."""
    shell = disks.shells[0]
    for name in ("sdb", "mmcblk0boot0", "nvme0n2"):
        shell.block(name, wwid=f"naa.{name}")
    for name in ("loop0", "sr0", "dm-0", "nvme0c0n2"):
        shell.block(name)
    shell.block("sdc", size="0")  # a card reader without a card
    shell.block("sda", wwid="naa.1")
    shell.block("sdd", wwid="naa.1")  # the same disk by another way
    (shell.folder / "sys/bus/mmc_rpmb/devices/mmcblk0rpmb").mkdir(parents=True)
    result, left = wiped(disks)
    assert left
    for name in ("sdb", "mmcblk0boot0", "nvme0n2"):
        assert f"{name} (5 MB that are no disk of the board's wiring; name /dev/{name} there" in result["msg"]
    assert "accept it: accept_unwiped: [mmcblk0boot0, nvme0n2, sdb, mmcblk0rpmb]" in result["msg"]


def test_namespaces_that_are_nowhere(disks):
    """Lost: what a tenant put into a namespace that it then detached, or deleted with its data."""
    shell = disks.shells[0]
    space = shell.folder / "sys/class/nvme/nvme0/nvme0n1"
    space.mkdir(parents=True)
    (space / "nsid").write_text("1\n")
    shell.program(
        "nvme",
        """case $1 in
list-ns) printf '[   0]:0x1\n[   1]:0x2\n' ;;
id-ctrl) printf 'NVME Identify Controller:\nvid       : 0x144d\ntnvmcap   : 1000204886016\nunvmcap   : 4294967296\n' ;;
esac""",
    )
    result, _left = wiped(disks)
    assert "nvme0-nsid2 (a namespace that is not attached; attach it" in result["msg"]
    assert "nvme0-unallocated (4096 MB in no namespace; nvme create-ns" in result["msg"]
    shell.hide("nvme")
    unseen = disks.wipe(0)["boards"][0]["proof"]["not_looked_for"]
    assert unseen == ["namespaces that are not attached of nvme0 (the RAM image has no nvme)"]


def test_a_program_that_only_complains_has_looked_for_nothing():
    """Lost: that nobody looked for another namespace, with what a tenant left in it."""
    unseen = []
    said = {("spaces", "nvme0"): ["NVMe status: INVALID_OPCODE"], ("controller", "nvme0"): ["unvmcap : 0"]}
    assert disk_areas._nvme("nvme0", said, unseen) == []
    assert unseen == ["namespaces of nvme0 (nvme list-ns said: NVMe status: INVALID_OPCODE)"]


def test_what_a_program_said_last_is_short():
    """A page of a program's help in each line of the report would hide which disk it is about."""
    assert disk_areas._last({("dco", "sda"): ["first", "y" * 200]}, "dco", "sda") == "y" * 80
    assert disk_areas._last({}, "dco", "sda") == "nothing"
