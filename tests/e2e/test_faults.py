# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When hardware, an image or the proxy misbehaves: who is blamed, who is served, what is left."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from conftest import FOLDER

#: Seconds from power to ssh that these tests give a boot: an undisturbed one takes a third of it.
TIMEOUT = 25


@pytest.fixture
def faults(lab):
    """Set the faults of the lab's first PDU; none afterwards."""

    def put(**switches):
        path = FOLDER / "lab.json"
        description = json.loads(path.read_text())
        description["pdus"]["pdu-a"]["faults"] = switches
        path.write_text(json.dumps(description))
        os.kill(json.loads((FOLDER / "run" / "pdu-a.json").read_text())["pid"], signal.SIGHUP)

    yield put
    put()


def board(lab, number):
    return lab.module("board_info", boards=[number], power=True)["boards"][0]


def test_an_outlet_that_does_not_obey(lab, faults):
    """Lost: a user who waits for a board that will never start, and a board that is handed out again and again."""
    faults(stuck=["5"])
    played = lab.provision("carol")
    assert played.board("carol") == 1
    assert re.search(r"outlet 5 of pdu-a: still off [\d.]+ s after 'on' \(PDU said Command success", played.output)
    broken = board(lab, 0)
    assert (broken["state"], broken["instance"]) == ("error", None)
    assert "outlet 5 of pdu-a" in broken["note"]
    assert lab.provision("dan").board("dan") == 2, "a board in error is not handed out"

    lab.play("repair", expect=2, node="board1")
    faults()
    lab.play("repair", node="board0")
    assert board(lab, 0)["state"] == "power off"
    assert lab.play("repair", node="board0").changed == 0


def test_an_image_that_does_not_boot(lab):
    """Lost: ten boards out of use because of one bad image."""
    lab.on_proxy(
        "set -e; mkdir /srv/bad; cd /srv/bad; tar xf /srv/images/debian-12.tar;"
        "rm root/usr/sbin/sshd; tar cf /srv/no-sshd.tar image.json kernel initrd root;"
        "rm -r /srv/bad"
    )
    lab.module("board_image", image="/srv/no-sshd.tar", name="no-sshd")
    # it has to come as far as that beside other load
    played = lab.provision("erin", expect=2, image="no-sshd", hetero_boot_timeout=90)
    assert "image no-sshd does not boot: stalled at running" in played.output
    assert (board(lab, 0)["state"], board(lab, 0)["power"]) == ("power off", "off")
    assert lab.module("board_info")["claims"] == []
    assert "fs_0" not in lab.on_proxy("ls /var/lib/hetero/board-roots; find /tftpboot -name vmlinux_0")


def test_a_tftp_server_that_is_down(lab):
    """Lost: boards blamed, one after the other, for what their proxy does not serve."""
    lab.on_proxy("systemctl stop xinetd")
    played = lab.provision("frank", expect=2, hetero_boot_timeout=TIMEOUT)
    assert "the proxy itself fails" in played.output
    assert "error" not in {entry["state"] for entry in lab.module("board_info")["boards"]}
    lab.on_proxy("systemctl start xinetd")
    again = lab.provision("frank")
    assert again.board("frank") == 0
    assert lab.ssh("frank", "uname -n").strip() == "frank"


def test_a_dry_run_touches_nothing(lab):
    """Lost: the courage to try a play with --check first."""
    process = lab.start("provision_instance", instance="gina", flavor="tp64.8x8", flags=("--check", "--diff"))
    played = lab.end(process)
    assert played.rc == 0, played.output
    for shown in ("pdu-a outlet 5 is off: off → on", "01-00-1a-ca-00-57-90.ipxe", '"pseudo": "/tftpboot/fs_0"'):
        assert shown in played.output
    assert lab.module("board_info")["claims"] == []
    assert lab.machine(0) is None
    assert "fs_0" not in lab.on_proxy("ls /var/lib/hetero/board-roots")


def test_a_boards_file_with_five_defects(lab, tmp_path):
    """Lost: an hour with a file that is refused one mistake at a time."""
    rows = (FOLDER.parents[2] / "roles" / "lab" / "files" / "tilera_boards").read_text().splitlines(keepends=True)
    rows[1] = rows[1].replace("10.0.2.1 ", "10.0.2.300 ")
    rows[5] = rows[5].replace("00:1A:CA:00:58:98", "00:1A:CA:00:57:90")
    rows[9] = rows[9].replace("16218", "-16218")
    rows[13] = rows[13].replace("3 10.0.2.4", "2 10.0.2.4")
    rows[18] = rows[18].replace('"vendor":', '"vendor"')
    bad = tmp_path / "tilera_boards"
    bad.write_text("".join(rows))
    played = lab.play("proxy", expect=2, tftp_proxy_boards_file=bad)
    for line, reason in ((2, "IPv4"), (6, "duplicate mac"), (10, "negative"), (14, "duplicate id"), (19, "JSON")):
        assert any(f":{line}:" in text and reason in text for text in played.output.splitlines()), (line, played.output)
    assert board(lab, 0)["ip"] == "10.0.2.1", "the file in use is the one from before"
