# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an outlet really feeds, and what a board says of its power: swapped cables, a reboot without a power cut."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import yaml
from conftest import FOLDER
from labs import ROOT

BOARD = 0


def pdus(state):
    """Stop or start the lab's PDUs; boards end with them."""
    subprocess.run([sys.executable, ROOT / "roles/lab/files/lab.py", FOLDER / "lab.json", "pdus", state], check=True)


def swap(first, second):
    """Exchange what hangs on two outlets of pdu-a; the outlets keep their names, as labels on a PDU do."""
    path = FOLDER / "lab.json"
    description = json.loads(path.read_text())
    outlets = description["pdus"]["pdu-a"]["outlets"]
    for key in ("argv", "console", "line"):
        outlets[first][key], outlets[second][key] = outlets[second][key], outlets[first][key]
    pdus("down")
    path.write_text(json.dumps(description))
    pdus("up")


@pytest.fixture
def swapped(lab):
    swap("5", "6")
    yield
    swap("5", "6")


def corrected(played):
    """The wiring lines that the play prints."""
    return yaml.safe_load("\n".join(re.findall(r"^  \d+: \{.*\}$", played.output, re.M)))


def test_two_swapped_cables(lab, swapped):
    """Lost: boards that never boot, and an afternoon behind the rack."""
    played = lab.play("cabling", expect=2, node="board0,board1,board5")
    said = dict(re.findall(r"^- +(board\d) +cabling +(pdu-. outlet \d feeds .*?) +[\d.]+ s$", played.output, re.M))
    assert re.match(r"pdu-a outlet 5 feeds board1 \(00:1a:ca:00:58:98\), not this board: boot request", said["board0"])
    assert re.match(r"pdu-a outlet 6 feeds board0 \(00:1a:ca:00:57:90\), not this board: boot request", said["board1"])
    assert said["board5"].startswith("pdu-b outlet 5 feeds it: boot request")
    assert {board: wiring["outlet"] for board, wiring in corrected(played).items()} == {0: "6", 1: "5"}
    assert [lab.machine(board) for board in (0, 1, 5)] == [None] * 3
    info = lab.module("board_info", boards=[0, 1, 5], power=True)["boards"]
    assert {(board["state"], board["power"]) for board in info} == {("power off", "off")}


@pytest.mark.long
def test_the_corrected_lines_are_the_truth(lab, swapped):
    """Lost: lines to paste that do not help; a check of all boards that ends."""
    played = lab.play("cabling", expect=2)
    assert "10 of 10 boards tested: 2 not as the wiring says" in played.output
    inventory = yaml.safe_load((FOLDER / "inventory" / "lab.yml").read_text())
    boards = inventory["proxies"]["hosts"]["proxy1"]["tftp_proxy_boards"]
    wiring = json.dumps({"tftp_proxy_boards": {**boards, **corrected(played)}})
    run = lab.start("proxy", flags=("-e", wiring))
    assert lab.end(run).rc == 0
    try:
        assert "all as the wiring says" in lab.play("cabling", node="board0,board1").output
        assert lab.provision("jackie", board=BOARD).phases("jackie")["power"].startswith("pdu-a outlet 6: off → on")
        lab.terminate("jackie")
    finally:
        lab.play("proxy")


def cuts():
    """How often the board's power was cut, by the PDU's own lines in its console's log. A reset is none."""
    text = (FOLDER / "consoles" / f"board{BOARD}.log").read_text(errors="replace")
    return text.count("--- power off ---")


def boot_id(lab):
    return lab.ssh("jackie", "cat /proc/sys/kernel/random/boot_id")


@pytest.mark.long
def test_a_reboot_without_a_power_cut(lab):
    """Lost: what a tenant's board had not written yet; and the proof that an instance is really off at its end."""
    lab.provision("jackie", board=BOARD)
    before, boot = cuts(), boot_id(lab)
    played = lab.play("reboot_instance", instance="jackie", how="soft")
    phases = played.phases("jackie")
    assert phases["reboot"] == "told by ssh, boot request seen"
    assert phases["running"] == "ssh answers"
    assert "power" not in phases
    assert cuts() == before
    assert boot_id(lab) != boot
    end = lab.terminate("jackie").phases("jackie")
    assert end["power"] == "pdu-a outlet 5: on → off, read back; console silent, no answer"


@pytest.mark.long
def test_a_board_whose_sshd_is_dead_is_rebooted_by_power(lab):
    """Lost: the reboot that is needed most."""
    lab.provision("jackie", board=BOARD)
    machine, boot = lab.machine(BOARD), boot_id(lab)
    # Over it for as long as this boot lasts; init starts the next one, which does nothing.
    lab.ssh("jackie", "mount --bind /bin/true /usr/sbin/sshd && kill $(cat /run/sshd.pid)")
    refused = lab.play("reboot_instance", expect=2, instance="jackie", how="soft")
    assert "Connection refused" in refused.output
    assert lab.machine(BOARD) == machine
    played = lab.play("reboot_instance", instance="jackie")
    assert "by power: cannot be told to reboot by ssh" in played.phases("jackie")["reboot"]
    assert played.phases("jackie")["power"] == "pdu-a outlet 5: on → off → on, read back"
    assert lab.machine(BOARD) != machine
    assert boot_id(lab) != boot
