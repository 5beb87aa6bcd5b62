# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes of something done on boards in RAM. Whole boots into RAM are tried by tests/unit/boards/disk.

Tests roots/ram.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ram_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ram import has_ram_image, ram_image
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


class Nothing:
    """In the place of a loop that switches boards."""

    def __init__(self, *words, **options):
        pass

    def run(self):
        pass


class Ram:
    """A board that is in RAM, as `in_ram` sees it."""

    failed = over = False

    def __init__(self, name):
        self.outer, self.ended = SimpleNamespace(name=name), []
        self.board = self.system = None
        self.driver = SimpleNamespace(shell=lambda board, system: None)
        self.key, self.phases = "said on its console", {}

    def must_be_the_board(self):
        pass

    def hand_over(self):
        self.ended.append("handed over")


@pytest.fixture
def rams(monkeypatch):
    """Two boards in RAM, which nothing switches."""
    made = [Ram("board0"), Ram("board1")]
    monkeypatch.setattr(ram_boot, "Starting", Nothing)
    monkeypatch.setattr(ram_boot, "Stopping", Nothing)
    monkeypatch.setattr(ram_boot, "_ready", lambda ram: ram)
    monkeypatch.setattr(ram_boot, "_clear", lambda ram: ram.ended.append("cleared"))
    return made


def test_a_fault_of_our_own_while_a_board_is_in_ram_is_no_success(rams):
    """Lost: a disk that is called wiped, and was not, for the code that wipes it broke off."""

    def act(work, shell):
        if work.name == "board1":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ram_boot.in_ram(None, rams, lifecycle.Options(), act)
    assert [ram.ended for ram in rams] == [["cleared", "handed over"]] * 2


def test_a_board_that_was_in_ram_counts_as_changed():
    """Lost: that a board was switched on and off, for a play that says what it changed."""
    outer = SimpleNamespace(changed=False, failed=False, record=None)
    ram = ram_boot.RamWork.__new__(ram_boot.RamWork)
    ram.outer, ram.failed, ram.board = outer, False, SimpleNamespace(id=0)
    ram.proxy = SimpleNamespace(store=SimpleNamespace(record=lambda board: f"record of {board}"))
    ram.hand_over()
    assert outer == SimpleNamespace(changed=True, failed=False, record="record of 0")


def test_a_boot_into_ram_is_not_ended_with_its_instance():
    """Lost: a wipe half done, by whoever ends the instance whose disk is being wiped."""
    assert ram_boot.BoardWork.may_be_ended
    assert not ram_boot.RamWork.may_be_ended


def test_who_asked_for_the_key_of_an_earlier_try_is_forgotten(monkeypatch):
    """Lost: a board whose disks are never wiped, for its key of another try was asked for, too."""
    monkeypatch.setattr(ram_boot, "serve_initrd", lambda *given: (None, None))
    monkeypatch.setattr(ram_boot, "System", lambda image, root, *keys: SimpleNamespace(image=image, console_key=None))
    ram = ram_boot.RamWork.__new__(ram_boot.RamWork)
    ram._system, ram._asked = SimpleNamespace(image=None, console_key=None), {"10.0.0.4", "10.0.0.9"}
    ram.driver = SimpleNamespace(files=lambda board: {"initrd_0": "initrd"}, ram_keys=True)
    commits = []
    ram.proxy, ram.board = SimpleNamespace(store=SimpleNamespace(commit=lambda: commits.append(True))), None
    monkeypatch.setattr(ram_boot, "INITRD", "initrd")
    ram.before_boot()
    ram.must_be_the_board()
    assert commits, "others wait to write while keys are made"


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ([("tftp", "initrd_0", "a")], "asked for once by TFTP"),
        ([("http", "initrd_0", "a"), ("http", "initrd_0", "a"), ("http", "vmlinux_0", "b")], "asked for once by HTTP"),
        ([("http", "initrd_0", "a"), ("http", "?", "b")], None),
        ([("http", "initrd_0", "a"), ("tftp", "initrd_0", "b")], None),
    ],
)
def test_who_asks_for_the_key_is_counted_by_whatever_way(asked, key):
    """Lost: the proof of a wipe, to a machine that fetches the RAM system's key by HTTP in the board's place."""
    ram = ram_boot.RamWork.__new__(ram_boot.RamWork)
    ram._system, ram._asked, ram._ways = SimpleNamespace(console_key=None), set(), set()
    ram.driver = SimpleNamespace(files=lambda board: {"initrd_0": "initrd"}, ram_keys=True)
    ram.board = SimpleNamespace(name="board0")
    for what in asked:
        ram.seen(*what)
    if key:
        ram.must_be_the_board()
        assert ram.key == key
    else:
        with pytest.raises(HeteroError, match="asked for 2 times"):
            ram.must_be_the_board()


def test_a_board_of_no_architecture_has_no_ram_image():
    """Lost: an AttributeError in place of words where the boards file gives a board no arch."""
    proxy, board = (
        SimpleNamespace(config=ProxyConfig(ram_images={"tilepro64": "ram"})),
        SimpleNamespace(arch=None, name="board4"),
    )
    assert not has_ram_image(proxy, board)
    with pytest.raises(BadInput, match="no RAM image is configured for"):
        ram_image(proxy, board)


def test_who_cannot_be_made_ready_is_told_while_others_go_on(rams, monkeypatch):
    """Lost: a disk that stays in its verb's hands for ever, for its board was refused before anything began."""
    monkeypatch.setattr(ram_boot, "_ready", lambda ram: None if ram is rams[0] else ram)
    told, acted = [], []
    ram_boot.in_ram(None, rams, lifecycle.Options(), lambda work, shell: acted.append(len(told)), told.append)
    assert (told, acted) == ([rams[0], rams[1].outer], [1])


def test_a_boot_into_ram_has_its_kernel_and_its_entry(monkeypatch):
    """Lost: a disk that is never wiped, for its board finds no kernel; or boots that of the tenant before."""
    did, image = [], SimpleNamespace(name="ram", initrd_for=lambda root: "/initrd")
    driver = SimpleNamespace(
        entry=lambda board, system: {"/entry": f"boots {system}"},
        files=lambda board: {"vmlinux_0": ram_boot.KERNEL, "initrd_0": ram_boot.INITRD},
        ram_keys=True,
    )
    monkeypatch.setattr(ram_boot, "ram_image", lambda proxy, board: image)
    monkeypatch.setattr(ram_boot, "console_of", lambda proxy, board, image: None)
    monkeypatch.setattr(ram_boot, "System", lambda image, root: "ram")
    monkeypatch.setattr(ram_boot, "RamWork", lambda work, system: SimpleNamespace(system=system))
    monkeypatch.setattr(ram_boot, "serve_kernel", lambda proxy, board, *given: did.append(given))
    monkeypatch.setattr(ram_boot.board_folder, "write_entry", lambda *given: did.append(given))
    assert ram_boot._ready(SimpleNamespace(proxy=None, board=None, driver=driver)).system == "ram"
    assert did == [(image, "vmlinux_0"), ("/entry", "boots ram")]
