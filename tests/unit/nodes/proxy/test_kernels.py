# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero kernels`. If these failed, a site that moves over would lose kernels and logs that it put into /tftpboot by
hand, its old boards would get no kernel any more, or a tenant's board would boot one that is not its image's.

Tests tftp/kernels_by_hand.py.
"""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import kernels as verb
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.console_log import (
    LOG_MARK,
    write_console_log,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import leftovers, prepare, remove


@pytest.fixture
def put(site):
    """Put a file into the TFTP root by hand, as often as called; its path."""

    def once(name, text="BY HAND", mode=0o644):
        site.tftp.mkdir(exist_ok=True)
        path = site.tftp / name
        path.write_text(text)
        path.chmod(mode)
        return path

    return once


def turn(proxy, check=False):
    """What one turn says."""
    said = []
    assert verb.kernels(proxy, said.append, check)
    return said


def served(site, board, name):
    """What in.tftpd would send, which follows links below its root; None where it finds nothing."""
    path = site.tftp / f"10.0.2.{board + 1}" / name
    return path.read_text() if path.exists() else None


def of_us(proxy, report, board=0):
    claim = proxy.store.record(board).claim
    prepare(proxy, proxy.board(board), claim, image_of(proxy, claim), Change(), report.call)


def test_a_board_that_nobody_has_gets_the_kernel_that_was_put_there(site, proxy, put):
    kernel = put("vmlinux_3")
    assert turn(proxy, check=True) == [f"board3 gets {kernel}, put there by hand from now on"]
    assert served(site, 3, "vmlinux_3") is None, "a dry run leads nobody anywhere"
    assert turn(proxy) == [f"board3 gets {kernel}, put there by hand from now on"]
    assert served(site, 3, "vmlinux_3") == "BY HAND"
    assert served(site, 2, "vmlinux_3") is None, "no board gets another's"
    assert turn(proxy) == [f"board3 gets {kernel}, put there by hand"]
    put("vmlinux_3", "NEWER")
    assert served(site, 3, "vmlinux_3") == "NEWER"


def test_it_keeps_no_board_from_being_free(site, proxy, put):
    """Lost: boards that move over, which would be out of use for what lies there since before."""
    put("vmlinux_3")
    put("log_3", "Linux version 2.6.26\n")
    turn(proxy)
    assert leftovers(proxy, proxy.board(3)) == []


def test_an_instance_gets_its_images_kernel_and_the_other_one_is_back_after_it(site, proxy, put, report):
    kernel = put("vmlinux_0")
    turn(proxy)
    site.claim(proxy)
    of_us(proxy, report)
    assert served(site, 0, "vmlinux_0") == "KERNEL" * 1000
    assert turn(proxy) == [f"board0 is jackie's: it does not get {kernel}, put there by hand, which stays"]
    assert served(site, 0, "vmlinux_0") == "KERNEL" * 1000
    remove(proxy, proxy.board(0), Change(), report.call)
    assert leftovers(proxy, proxy.board(0)) == []
    assert served(site, 0, "vmlinux_0") == "BY HAND"
    assert kernel.read_text() == "BY HAND"


def test_a_claimed_board_is_led_to_nothing(site, proxy, put):
    """Lost: a tenant whose board boots a kernel that is not its image's, before its own is there."""
    kernel = put("vmlinux_0")
    turn(proxy)
    site.claim(proxy)
    assert turn(proxy) == [f"board0 is jackie's: it does not get {kernel}, put there by hand, which stays"]
    assert served(site, 0, "vmlinux_0") is None
    assert not (site.tftp / "10.0.2.1").exists()
    assert kernel.read_text() == "BY HAND"


def test_what_an_instance_left_is_no_kernel_put_there_by_hand(site, proxy, put):
    put("vmlinux_1")
    folder = site.tftp / "10.0.2.2"
    folder.mkdir()
    (folder / "vmlinux_1").write_text("LEFT")
    said = turn(proxy)
    assert said == [f"board1 does not get {site.tftp}/vmlinux_1: it has boot files of its own, left by an instance"]
    assert leftovers(proxy, proxy.board(1)) == [f"file {folder}/vmlinux_1", f"folder {folder}"]


@pytest.mark.parametrize("kind", ["link", "folder", "closed"])
def test_what_the_server_would_not_send_is_said(site, proxy, put, kind):
    kernel = put("vmlinux_3", mode=0o600)
    if kind != "closed":
        kernel.unlink()
    if kind == "folder":
        kernel.mkdir()
    if kind == "link":
        os.symlink("/etc/passwd", kernel)
    why = {
        "link": "is a link: put the file itself there",
        "folder": "is a folder: put the file itself there",
        "closed": f"cannot be read by the TFTP server: chmod o+r {kernel}",
    }
    assert turn(proxy) == [f"board3 does not get {kernel}: it {why[kind]}"]
    assert not (site.tftp / "10.0.2.4").exists()


def test_a_file_that_is_taken_away_or_becomes_a_link_is_led_to_no_more(site, proxy, put):
    kernel = put("vmlinux_3")
    turn(proxy)
    kernel.unlink()
    said = turn(proxy)
    assert said == [f"vmlinux_3: is no more what board3 gets: it is not in {site.tftp} any more"]
    assert not (site.tftp / "10.0.2.4").exists()
    put("vmlinux_3")
    turn(proxy)
    kernel.unlink()
    os.symlink("/etc/passwd", kernel)
    assert turn(proxy) == [f"board3 does not get {kernel}: it is a link: put the file itself there"]
    assert not (site.tftp / "10.0.2.4").exists()


def test_a_turn_that_was_cut_off_keeps_no_board_from_being_free(site, proxy, put, monkeypatch):
    """Lost: a board, until an operator reconciles it, for an empty folder."""
    kernel, folder = put("vmlinux_3"), site.tftp / "10.0.2.4"
    turn(proxy)
    kernel.unlink()

    def cut_off(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", cut_off)
        with pytest.raises(KeyboardInterrupt):
            turn(proxy)
    assert os.listdir(folder) == []
    assert (turn(proxy, check=True), folder.exists()) == ([], True), "a dry run changes nothing"
    assert (turn(proxy), folder.exists()) == ([], False)
    assert leftovers(proxy, proxy.board(3)) == []


def test_an_empty_folder_of_a_board_that_somebody_has_or_works_on_stays(site, proxy):
    """Lost: a board's boot, to a turn that comes between the making of its folder and of what is in it."""
    site.claim(proxy)
    for address in ("10.0.2.1", "10.0.2.4"):
        (site.tftp / address).mkdir(parents=True)
    with lock(proxy.config.run_folder, "board3", "provision", "another", Deadline(0)):
        turn(proxy)
        assert sorted(os.listdir(site.tftp)) == ["10.0.2.1", "10.0.2.4"]
    turn(proxy)
    assert os.listdir(site.tftp) == ["10.0.2.1"]


def test_an_address_that_is_no_boards_any_more_is_led_to_nothing(site, proxy, put):
    put("vmlinux_3")
    turn(proxy)
    del proxy.boards[3]
    why = "no board of the boards file has that address"
    assert turn(proxy) == [f"vmlinux_3: is no more what 10.0.2.4 gets: {why}"]
    assert not (site.tftp / "10.0.2.4").exists()


def test_a_board_that_another_works_on_is_left_to_the_next_turn(site, proxy, put):
    put("vmlinux_3")
    with lock(proxy.config.run_folder, "board3", "provision", "another", Deadline(0)):
        assert turn(proxy) == ["board3: another works on it, so it was left out: hetero kernels does it then"]
        assert served(site, 3, "vmlinux_3") is None
    turn(proxy)
    assert served(site, 3, "vmlinux_3") == "BY HAND"


def test_each_turn_of_reap_finds_what_was_put_there_since(site, proxy, put, capsys):
    """Lost: the old board whose kernel was put there after the set-up."""
    kernel = put("vmlinux_2")
    put("tilera_boards", (site.folder / "tilera_boards").read_text())
    proxy.store.close()
    assert reap.main(["--config", site.params["config"]]) == 0
    assert served(site, 2, "vmlinux_2") == "BY HAND"
    assert f"board2 gets {kernel}, put there by hand from now on\n" in capsys.readouterr().out
    assert reap.main(["--config", site.params["config"]]) == 0
    assert capsys.readouterr().out == "", "nothing is said that is so since before"


def test_the_words_are_printed(site, proxy, put, capsys):
    kernel = put("vmlinux_3")
    put("tilera_boards", (site.folder / "tilera_boards").read_text())
    proxy.store.close()
    assert verb.main(["--config", site.params["config"], "--check"]) == 0
    assert capsys.readouterr().out == f"board3 gets {kernel}, put there by hand from now on\n"
    assert served(site, 3, "vmlinux_3") is None


# ---- the log of what a board's kernel printed, which the blueprint's scripts wrote to the same place


def test_a_log_that_scripts_wrote_is_neither_overwritten_nor_removed(site, proxy, put, report):
    theirs = put("log_0", "Linux version 2.6.26\n", 0o600)
    site.claim(proxy)
    of_us(proxy, report)
    remove(proxy, proxy.board(0), Change(), report.call)
    assert theirs.read_text() == "Linux version 2.6.26\n"
    write_console_log(proxy, proxy.board(0), "ours\n")
    write_console_log(proxy, proxy.board(0), "ours again\n")
    kept = site.tftp / "log_0.by-hand"
    assert kept.read_text() == "Linux version 2.6.26\n"
    assert theirs.read_text() == f"{LOG_MARK}ours again\n"
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o600
    remove(proxy, proxy.board(0), Change(), report.call)
    assert (theirs.exists(), kept.exists()) == (False, True)
    assert sorted(name for name in os.listdir(site.tftp) if "log" in name) == ["log_0.by-hand"]
