# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that are served at another address than their own. If these fail, a board is brought to an address at which
another tenant is at work, or a request for a rack of boards spends most of its time on looks at all folders for each.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import changed_addresses
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.changed_addresses import (
    listed_once,
    served_elsewhere,
)


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    """A proxy of board0 to board9, at 10.0.2.1 to 10.0.2.10, without an export; and its TFTP root."""
    monkeypatch.setattr(changed_addresses, "root_of_board", lambda proxy, number: SimpleNamespace(path=""))
    server = SimpleNamespace(client=lambda name: None, mounted_as=lambda number, path: "")
    monkeypatch.setattr(changed_addresses, "nfs_server_of", lambda proxy: server)
    boards = {number: SimpleNamespace(id=number, ip=f"10.0.2.{number + 1}") for number in range(10)}
    return SimpleNamespace(boards=boards, config=SimpleNamespace(tftp_root=str(tmp_path / "tftpboot")))


def put(proxy, folder, *names):
    path = os.path.join(proxy.config.tftp_root, folder)
    os.makedirs(path, exist_ok=True)
    for name in names:
        with open(os.path.join(path, name), "w", encoding="utf-8"):
            pass
    return path


def both(proxy, number):
    """What a look by itself finds, and one of many."""
    with listed_once():
        served_elsewhere(proxy, 9)
        listed = served_elsewhere(proxy, number)
    assert listed == served_elsewhere(proxy, number)
    return listed


def test_where_a_board_is_served_is_the_same_for_one_and_for_many(proxy):
    """Lost: a tenant's work at the earlier address, where many boards are looked at together."""
    assert both(proxy, 1) is None
    put(proxy, "10.0.2.99", "vmlinux_1", "vmlinux_11", "vmlinux_x", "initrd_2")
    put(proxy, "10.0.2.98", "vmlinux_1")
    put(proxy, "", "vmlinux_3")
    os.symlink("/etc/passwd", os.path.join(put(proxy, "10.0.2.97"), "vmlinux_1"))
    os.mkdir(os.path.join(put(proxy, "10.0.2.97"), "vmlinux_2"))
    assert [both(proxy, number) for number in (1, 2, 3, 11)] == ["10.0.2.98", None, None, "10.0.2.99"]
    put(proxy, "10.0.2.2", "vmlinux_1")
    assert both(proxy, 1) is None, "at its own address"


def test_the_folders_are_listed_once_for_many_and_anew_for_the_next(proxy, monkeypatch):
    """Lost: the time of a rack, which would grow with the square of its boards; or what is served since."""
    put(proxy, "10.0.2.99", "vmlinux_1")
    listed, real = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or real(path))
    with listed_once():
        assert [served_elsewhere(proxy, number) for number in range(4)] == [None, "10.0.2.99", None, None]
        assert listed == [proxy.config.tftp_root]
    put(proxy, "10.0.2.98", "vmlinux_2")
    with listed_once():
        assert served_elsewhere(proxy, 2) == "10.0.2.98"
    os.unlink(os.path.join(proxy.config.tftp_root, "10.0.2.98", "vmlinux_2"))
    assert served_elsewhere(proxy, 2) is None
