# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second run changes nothing; what somebody took away by hand is put back, and only that."""

from __future__ import annotations

import pytest

BOARD = 0
IP = "10.0.2.1"
ENTRY = f"/tftpboot/{IP}/01-00-1a-ca-00-57-90.ipxe"
ROOT = f"/var/lib/hetero/board-roots/fs_{BOARD}/root"


@pytest.fixture(scope="module")
def jackie(up):
    played = up.provision("jackie", board=BOARD)
    assert played.board("jackie") == BOARD
    yield up
    up.terminate("jackie")


def boot_id(lab):
    return lab.ssh("jackie", "cat /proc/sys/kernel/random/boot_id")


def test_second_run_changes_nothing(jackie):
    """Lost: a play that can be run again without a thought."""
    before = boot_id(jackie)
    again = jackie.provision("jackie", board=BOARD)
    assert (again.changed, again.board("jackie")) == (0, BOARD)
    assert boot_id(jackie) == before


def test_a_reboot_is_another_boot_of_the_same_root(jackie):
    """Lost: a tenant's files; or the reboot, which was none."""
    before = boot_id(jackie)
    jackie.ssh("jackie", "echo kept > /root/data; sync")
    jackie.play("reboot_instance", instance="jackie")
    assert boot_id(jackie) != before
    look = jackie.ssh("jackie", "uname -n; findmnt -no SOURCE,FSTYPE /; cat /root/data").splitlines()
    assert look == ["jackie", f"10.0.2.254:/tftpboot/fs_{BOARD} nfs", "kept"]
    info = jackie.module("board_info", power=True)["boards"]
    assert [entry["id"] for entry in info if entry["power"] == "on"] == [BOARD]
    assert [entry["state"] for entry in info] == ["running"] + ["power off"] * 9


def test_power_comes_back(jackie):
    """Lost: a board that somebody switched off stays off although it is recorded as running."""
    jackie.inside("fence_apc", "-a", "10.0.100.1", "-l", "apc", "-p", "apc", "-n", "5", "-o", "off")
    assert jackie.machine(BOARD) is None
    again = jackie.provision("jackie", board=BOARD)
    assert again.changed == 1
    assert again.phases("jackie")["power"] == "pdu-a outlet 5: off → on, read back"
    assert "image" not in again.phases("jackie")
    assert jackie.ssh("jackie", "uname -n").strip() == "jackie"


def test_export_comes_back(jackie):
    """Lost: a board that hangs on its root for ever after the export was removed."""
    before = boot_id(jackie)
    call = "busctl call org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr RemoveExport q"
    jackie.on_proxy(f"{call} {BOARD + 1}")
    again = jackie.provision("jackie", board=BOARD)
    assert again.changed == 1
    assert set(again.phases("jackie")) - {"wait"} == {"image", "running"}
    assert boot_id(jackie) == before, "the export came back without a reboot"
    assert f"fs_{BOARD}" in jackie.on_proxy(call.replace("RemoveExport q", "ShowExports"))


def test_boot_entry_comes_back(jackie):
    """Lost: a board that does not boot again after the next power cut."""
    before = boot_id(jackie)
    entry = jackie.on_proxy(f"cat {ENTRY} && rm {ENTRY}")
    again = jackie.provision("jackie", board=BOARD)
    assert again.changed == 1
    assert jackie.on_proxy(f"cat {ENTRY}") == entry
    assert boot_id(jackie) == before


def test_key_comes_back(jackie):
    """Lost: a user who cannot log in to what the play calls running."""
    before = boot_id(jackie)
    jackie.on_proxy(f"sed -i d {ROOT}/root/.ssh/authorized_keys")
    again = jackie.provision("jackie", board=BOARD)
    assert again.changed == 1
    assert boot_id(jackie) == before
