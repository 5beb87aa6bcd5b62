# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of boards by rules alone: hardware, proofs of power, the wiring as it was found, a module's summary.

Tests boards/cabling/wiring_lines.py, boards/disk/hardware.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import wiring_lines
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import hardware
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import (
    outlet_power,
    pdu_sessions,
    power_proof,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    NFS,
    SYSTEM,
    TFTP,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, Wire

SAID = """\
memory 4194304
cpus 64
disk /dev/sda 2048000 ATA_Disk_1 S_N
disk /dev/sdb 2048 - -
link eth0 02:00:00:00:00:01 up 1000
link eth1 02:00:00:00:00:02 down -1
link eth2 02:00:00:00:00:03 down -

something else
"""


def test_what_a_board_has():
    """Lost: half a disk, or a board's memory by a factor of a thousand, in what decides which flavor it serves."""
    asked = []

    def run(argv, deadline):
        asked.append((argv, deadline))
        return SAID.replace("\n\n", "\n")

    found = hardware.hardware(SimpleNamespace(run=run), "soon")
    assert asked == [(["sh", "-c", hardware.LOOK], "soon")]
    assert found == dict(
        memory_mb=4096,
        cpus=64,
        disks=[
            dict(device="/dev/sda", bytes=1048576000, model="ATA Disk 1", serial="S N"),
            dict(device="/dev/sdb", bytes=1048576, model="", serial=""),
        ],
        links=[
            dict(name="eth0", mac="02:00:00:00:00:01", state="up", mbit=1000),
            dict(name="eth1", mac="02:00:00:00:00:02", state="down", mbit=None),
            dict(name="eth2", mac="02:00:00:00:00:03", state="down", mbit=None),
        ],
    )
    words = "4096 MB, 64 CPUs, /dev/sda 1000 MB S N, /dev/sdb 1 MB, eth0 up 1000 Mbit/s, eth1 down, eth2 down"
    assert hardware.in_words(found) == words
    none = dict(memory_mb=None, cpus=None, disks=[], links=[])
    assert hardware.hardware(SimpleNamespace(run=lambda *given: ""), None) == none
    assert hardware.in_words(dict(none, memory_mb=1, cpus=2)) == "1 MB, 2 CPUs, no disk"


@pytest.mark.parametrize(
    ("flash", "kinds", "grew", "told"),
    [
        (False, {FIRMWARE: 103.0, TFTP: 102.0}, True, "boot request 2.0 s after power on"),
        (False, {TFTP: 99.0}, False, "boot request 0.0 s after power on"),
        (True, {SYSTEM: 105.5}, False, "boot request 5.5 s after power on"),
        # what a kernel asks for shows nothing of a board that boots from the network: it may be the one before
        (False, {SYSTEM: 105.5, NFS: 106.0}, False, power_proof.UNSEEN),
        (False, {NFS: 106.0}, True, "its console's log grew"),
        (False, {}, False, power_proof.UNSEEN),
    ],
)
def test_how_it_is_proven_that_a_board_was_switched_on(tmp_path, flash, kinds, grew, told):
    """Lost: a swapped cable counts as proven, and the next stop cuts somebody else's board."""
    said, log = [], tmp_path / "board0.log"
    log.write_text("grown" if grew else "now")
    work = SimpleNamespace(power_proof=dict(pdu="read back"), say=lambda *words: said.append(words))
    boot = SimpleNamespace(work=work, flash=flash, kinds=kinds, powered=100.0, console=str(log), console_from=3)
    power_proof.of_running(boot)
    assert work.power_proof == dict(pdu="read back", board=told)
    assert said == ([("power", told)] if told == power_proof.UNSEEN else [])
    for way, switched in (("off → on", True), ("on → off → on", told != power_proof.UNSEEN)):
        boot.way = way
        assert power_proof.is_by_its_outlet(boot) is switched
    boot.console = None
    power_proof.of_running(boot)
    assert work.power_proof["board"] == (power_proof.UNSEEN if "console" in told else told)
    work.power_proof = None
    power_proof.of_running(boot)
    assert work.power_proof is None
    assert power_proof.is_by_its_outlet(boot) is False


@pytest.mark.parametrize(
    ("console", "answered", "words", "unproven"),
    [
        ("/log", True, "console silent, no answer", None),
        ("/log", False, "console silent", None),
        (None, True, "no answer", None),
        (None, False, None, "no own proof: it has no console and was not answering before"),
        (None, None, None, "no own proof: it has no console and was off before"),
    ],
)
def test_what_silence_proves(console, answered, words, unproven):
    silence = power_proof.Silence.__new__(power_proof.Silence)
    silence._console, silence.answered = console, answered
    assert silence.words == words
    assert words or silence.unproven == unproven


def found(number, verdict="right", at=None, seconds=1.0):
    board = SimpleNamespace(id=number, name=f"board{number}")
    work = SimpleNamespace(board=board, pdu="pdu-a", outlet=str(number + 1))
    return SimpleNamespace(verdict=verdict, found=at or [], work=work, seconds=seconds)


def test_the_wiring_as_it_was_found():
    """Lost: lines that an operator pastes; a wrong one cuts the board of somebody else, or drops a driver's options."""
    wires = {
        0: {"pdu": "pdu-a", "outlet": "1", "console": "/log"},
        1: {"pdu": "pdu-a", "outlet": "2", "others": {"card": "sd"}},
        2: {},
    }
    proxy = SimpleNamespace(
        board=lambda number: SimpleNamespace(id=number),
        wiring=lambda board: Wire(**wires[board.id]),
        config=SimpleNamespace(boards={str(number): Wire(**said) for number, said in wires.items()}),
    )
    swapped = [found(1, wiring_lines.OTHER, [0]), found(0, wiring_lines.OTHER, [1]), found(2)]
    wiring = wiring_lines.corrected(proxy, swapped)
    assert list(wiring.items()) == [
        (0, {"pdu": "pdu-a", "outlet": "2", "console": "/log"}),
        (1, {"pdu": "pdu-a", "outlet": "1", "card": "sd"}),
    ]
    assert wiring_lines.headline(swapped, swapped[:2], wiring) == [
        "3 of 3 boards tested: 2 not as the wiring says",
        "Move the cables, or correct tftp_proxy_boards and run ansible-playbook hetero.compute.proxy:",
        '  0: {"pdu": "pdu-a", "outlet": "2", "console": "/log"}',
        '  1: {"pdu": "pdu-a", "outlet": "1", "card": "sd"}',
    ]
    one = [found(1, wiring_lines.OTHER, [0]), found(2, seconds=None)]
    assert wiring_lines.headline(one, one[:1], wiring_lines.corrected(proxy, one))[0] == (
        "1 of 2 boards tested: 1 not as the wiring says"
    )
    assert wiring_lines.headline(one, one[:1], wiring_lines.corrected(proxy, one))[-1] == (
        "  # 1: which outlet feeds board1 was not found"
    )
    assert wiring_lines.headline([found(2)], [], {}) == ["1 of 1 boards tested: all as the wiring says"]
    assert wiring_lines.headline([found(2, seconds=None)], [], {}) == ["0 of 1 boards tested"]


def test_an_outlet_that_is_not_there_is_told_with_those_that_are():
    work = found(0).work
    assert board_work.no_outlet(work, ["2", "3"]).what == "pdu-a has no outlet 1 (it has 2, 3)"
    assert board_work.no_outlet(work, []).what == "pdu-a has no outlet 1 (it has none)"
    assert board_work.no_outlet(work, []).thing == "board0"


def test_a_summary_says_all_that_failed_and_the_worst_fault():
    """Lost: that the proxy is at fault where a board's is told; or a board that failed beside one that did not."""

    def work(number, **more):
        known = dict(lines=[f"line {number}"], failed=False, blame=None, changed=False, error=None)
        return SimpleNamespace(result=lambda: f"result {number}", **{**known, **more})

    change = SimpleNamespace(result=dict(diff=[], seconds={"boot": 1.0}))
    assert board_work.summary([work(0), work(1)], change) == dict(
        diff=[],
        seconds={"boot": 1.0},
        boards=["result 0", "result 1"],
        lines=["line 0", "line 1"],
        blame=None,
        failed=False,
        changed=False,
    )
    faults = [
        work(number, failed=True, blame=blame, error=f"{blame} did it")
        for number, blame in enumerate(("board", "image", "network", "proxy"))
    ]
    told = board_work.summary([*faults, work(9, changed=True)], change)
    assert (told["blame"], told["failed"], told["changed"]) == ("proxy", True, True)
    assert told["msg"] == "board did it; image did it; network did it; proxy did it"
    assert board_work.summary(faults[:3], change)["blame"] == "network"
    assert board_work.summary([], change)["boards"] == []


def test_which_boards_have_power(monkeypatch):
    """Lost: a board is said to be off whose PDU did not answer, or each PDU is asked once for each of its boards."""
    wires = {
        0: {"pdu": "a", "outlet": "1"},
        1: {"pdu": "a", "outlet": "7"},
        2: {"pdu": "b", "outlet": "1"},
        3: {"pdu": "a"},
    }
    wires.update({4: {}, 5: {"pdu": "a", "outlet": "2"}})
    asked = []

    class Session:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            asked.append(self.name)
            if self.name == "b":
                raise HeteroError("is away", "b", "look at it")
            return self

        def __exit__(self, *error):
            pass

        def status(self):
            return {"1": "on", "2": "off"}

    monkeypatch.setattr(pdu_sessions, "session", lambda name, *given: Session(name))
    proxy = SimpleNamespace(
        wiring=lambda board: Wire(**wires[board]),
        board=lambda number: number,
        pdu=lambda name: ({}, {}),
        silent_pdus={},
        config=ProxyConfig(run_folder=""),
        actor="test",
    )
    boards = [dict(id=number, power="on", power_seen=1.0) for number in wires]
    errors = outlet_power.outlet_power(proxy, boards, Deadline(60))
    assert errors == {
        "a": "a: has no outlet 7: correct the wiring in proxy.json",
        "b": "b: is away: look at it",
    }
    assert [board["power"] for board in boards] == ["on", None, None, None, None, "off"]
    assert [board["power_seen"] is not None for board in boards] == [True, False, False, False, False, True]
    assert sorted(asked) == ["a", "b"]
