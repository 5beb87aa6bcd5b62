# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy, or what it serves by, is started again under two boards that write to their roots all the time."""

from __future__ import annotations

import re

import pytest
from conftest import FOLDER
from writing import write_on, writing

BOARDS = {"alice": 0, "bert": 1}
SHOW = "busctl --json=short call org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr ShowExports"


@pytest.fixture(scope="module")
def two(up):
    """Two instances, provisioned side by side."""
    plays = [
        up.start("provision_instance", instance=name, flavor="tp64.8x8", board=board) for name, board in BOARDS.items()
    ]
    for played in [up.end(play) for play in plays]:
        assert played.rc == 0, played.output
    yield up
    for name in BOARDS:
        up.terminate(name)


@pytest.fixture
def writers(two):
    """Both boards write while a test runs, and the exports are the same before and after."""
    with writing(two, BOARDS):
        before = exports(two)
        yield two
        write_on(two, BOARDS)
        assert exports(two) == before == {str(board + 1): f"/tftpboot/fs_{board}" for board in BOARDS.values()}


def exports(lab):
    """{id: name} as the server says."""
    return dict(re.findall(r'\[(\d+),"(/tftpboot/[^"]+)"', lab.on_proxy(SHOW)))


@pytest.mark.parametrize("how", [(), pytest.param(("-k",), marks=pytest.mark.long)], ids=["reboot", "power cut"])
def test_the_proxy_is_started_again(writers, how):
    """Lost: what everybody was working on, on all boards of a proxy that gets a new kernel or loses its power."""
    boards = writers.boot_ids(BOARDS)
    writers.inside("lxc-stop", "-P", FOLDER / "nodes", "-n", "proxy1", *how)
    writers.start_proxy()
    assert int(writers.on_proxy("grep -c ' - overlay fs_' /proc/self/mountinfo")) == len(BOARDS)
    for name, board in BOARDS.items():
        again = writers.provision(name, board=board)
        assert again.changed == 0, again.output
    assert writers.boot_ids(BOARDS) == boards


@pytest.mark.parametrize(
    "command",
    [
        "systemctl restart nfs-ganesha",
        pytest.param("systemctl reload nfs-ganesha", marks=pytest.mark.long),
        pytest.param("systemctl kill --signal=KILL nfs-ganesha", marks=pytest.mark.long),
        "systemctl restart dbus",
        pytest.param("systemctl kill --signal=KILL dbus", marks=pytest.mark.long),
    ],
)
def test_what_it_serves_by_is_started_again(writers, command):
    """Lost: boards whose root is gone ("stale file handle") after an upgrade of a package on the proxy, or a crash."""
    writers.on_proxy(command)
    write_on(writers, BOARDS)


def test_a_play_that_follows_a_proxy_whose_network_goes_ends_with_the_way_on(up):
    """Lost: a user's terminal, or a slot of AWX, for hours, to a proxy that lost its network while a board boots."""
    link = ["ip", "link", "set", "proxy1-0"]
    play = up.start("provision_instance", instance="cut", flavor="tp64.8x8", board=2)
    try:
        for line in play.stdout:
            if "off → on, read back" in line:
                up.inside(*link, "down")
                break
        played = up.end(play, timeout=180)
    finally:
        up.inside(*link, "up")
    assert played.rc != 0, played.output
    assert re.search("the node (does not answer|cannot be reached) any more", played.output), played.output
    assert "Run this again: it waits for that, or goes on where it was." in played.output
    again = up.provision("cut", board=2)
    assert "off → on" not in again.output, "the board was booting all the while"
    up.terminate("cut")
