# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is not mounted: database, records and roots are away, and boot files and exports are not.
If these fail, a tenant whose board does not answer ssh loses its power, or what it boots from, as nobody's.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile


@pytest.mark.parametrize("exported", [True, False])
def test_a_silent_board_with_boot_files_of_an_instance_is_not_cut(jackie, exported):
    """Lost: jackie's power: /tftpboot has her board's kernel, and the NFS server may yet serve it its root."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    jackie.state.rename(jackie.folder / "not mounted")
    jackie.state.mkdir()
    if not exported:
        (jackie.folder / "ganesha.json").write_text("{}")
    for _turn in range(2):
        said = found(reconcile(jackie))
        assert (jackie.outlets()["1"], {done for _text, done in said}) == ("on", {None}), said
        assert f"the file system of {jackie.state} is mounted" in said[0][0]


def test_an_operator_who_knows_better_has_it_switched_off_and_cleaned(jackie):
    """Lost: the way out that is printed, where what the record does not know of is nobody's indeed."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    jackie.state.rename(jackie.folder / "not mounted")
    jackie.state.mkdir()
    for module, state in (("tilera_boot", "stopped"), ("board_image", "absent")):
        assert not jackie.module(module, boards=[0], state=state).get("failed")
    assert (jackie.outlets()["1"], found(reconcile(jackie))) == ("off", [])


@pytest.mark.parametrize("exported", [True, False])
def test_what_a_board_that_is_off_boots_from_stays(jackie, exported):
    """Lost: jackie's boot files and export, while her root and her claim are on the disk that is not mounted."""
    jackie.cut(0)
    jackie.state.rename(jackie.folder / "not mounted")
    jackie.state.mkdir()
    if not exported:
        (jackie.folder / "ganesha.json").write_text("{}")
    files, exports = sorted(jackie.tftp.rglob("*")), (jackie.folder / "ganesha.json").read_text()
    jackie.pdu(board0="off", board1="on")  # a board that is freed meanwhile tells nothing of hers
    for _turn in range(2):
        ((text, done),) = found(reconcile(jackie))
        assert (done, f"the file system of {jackie.state} is mounted" in text) == (None, True), text
        assert sorted(jackie.tftp.rglob("*")) == files
        assert (jackie.folder / "ganesha.json").read_text() == exports
    assert not jackie.module("board_image", boards=[0], state="absent").get("failed")
    assert found(reconcile(jackie)) == []


def test_what_is_left_of_a_node_that_has_instances_is_removed(jackie):
    """Lost: a free board, kept from everybody by a file that a hand has left."""
    left = jackie.tftp / "10.0.2.2" / "vmlinux_1"
    left.parent.mkdir()
    left.touch()
    assert found(reconcile(jackie), 1) == [(f"left by nobody: file {left}; folder {left.parent}", "off, cleaned, free")]
