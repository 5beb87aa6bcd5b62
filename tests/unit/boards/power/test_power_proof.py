# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power proven twice: the PDU's read-back, and the board's own sign. The address is asked over a real socket."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import ssh
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(power_proof, "LOOK", 0.02)
    monkeypatch.setattr(power_proof, "LINGER", 0.3)


def board(result, number=0):
    return next(one for one in result["boards"] if one["board"] == number)


def texts(site, number, phase="power"):
    return [event.text for event in site.events(number) if event.phase == phase]


def test_both_proofs_of_a_start_and_a_stop(site):
    """Lost: the difference between an outlet that says on, and a board that is."""
    site.claim(0)
    proof = board(site.run("start", 0))["power_proof"]
    assert proof["pdu"] == "off → on, read back"
    assert proof["board"].startswith("boot request 0.")
    assert board(site.run("start", 0))["power_proof"] is None, "nothing was switched"
    assert board(site.run("stop", 0))["power_proof"] == {
        "pdu": "on → off, read back",
        "board": "console silent, no answer",
    }
    assert texts(site, 0)[-1] == "pdu-a outlet 5: on → off, read back; console silent, no answer"


def test_a_swapped_feed_is_an_error_and_never_clean(site):
    """Lost: a tenant's machine that runs on, its board handed to the next one as clean."""
    site.claim(0, 1)
    site.run("start", 0, 1)
    site.play(0, feeds=[1])
    result = site.run("stop", 0)
    note = "not switched off: off by pdu-a's read-back, but something answers at 10.0.2.1: outlet 5 does not feed this"
    assert (result["failed"], site.record(0).state, site.power(0)) == (True, "running", "on")
    assert board(result)["error"].startswith(f"board0: {note} board")
    assert "hetero.compute.cabling" in board(result)["error"]
    proof = {"pdu": "on → off → on, read back", "board": "something answers at 10.0.2.1"}
    assert board(result)["power_proof"] == proof
    again = site.run("stop", 0)
    assert (again["failed"], board(again)["power_proof"], site.power(0)) == (True, None, "on"), "not cut once more"


def test_a_relay_that_sticks(site):
    """Lost: what the board itself does, for whoever has to find out whether relay or read-back is broken."""
    site.claim(0)
    site.run("start", 0)
    site.pdu("pdu-a", refused=["5"])
    result = site.run("stop", 0)
    assert (result["blame"], site.record(0).state) == ("board", "error")
    assert board(result)["power_proof"]["board"] == "something answers at 10.0.2.1"
    assert board(result)["power_proof"]["pdu"].startswith("still on")
    assert texts(site, 0)[-1].endswith("; the board: something answers at 10.0.2.1")


def switched_on(site):
    """Board 0 is on for its claim, and silent."""
    with site.proxy() as proxy:
        proxy.store.event(0, "switch", "pdu-a outlet 5 is to be switched on")
    site.cut(0, "on")


def test_a_relay_that_reads_on_while_its_board_is_dark(site):
    """Lost: the hint that the PDU's reading is wrong, not its relay."""
    site.claim(0)
    switched_on(site)
    site.pdu("pdu-a", refused=["5"])
    result = site.run("stop", 0)
    assert site.record(0).state == "error"
    assert board(result)["power_proof"]["board"] == "silent"


def test_no_console_and_no_answer_before_is_said(site):
    """Lost: a word that only the PDU's reading stands behind this "off"."""
    del site.config["boards"]["0"]["console"]
    site.write()
    site.claim(0)
    switched_on(site)
    result = site.run("stop", 0)
    assert (result["failed"], board(result)["power_proof"]["board"]) == (
        False,
        "no own proof: it has no console and was not answering before",
    )
    assert texts(site, 0)[-1].endswith(
        "on → off, read back; no own proof: it has no console and was not answering before"
    )


def test_a_console_that_goes_on_is_a_sign_of_life(site, monkeypatch):
    """Lost: a board without ssh that runs on, taken for off."""
    monkeypatch.setattr(power_proof, "LOOK", 1.0)  # on a busy machine it comes to write now and then
    site.claim(0)
    site.run("start", 0)
    over = threading.Event()

    def talk():
        while not over.wait(0.005):
            with open(site.folder / "board0.log", "a") as log:
                log.write("still here\n")

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        result = site.run("stop", 0)
    finally:
        over.set()
        thread.join()
    assert (site.record(0).state, board(result)["power_proof"]["board"]) == ("error", "its console's log grows")


def test_a_power_supply_may_bridge_a_moment(site, monkeypatch):
    """Lost: good boards kept out of use because their capacitors are large."""
    monkeypatch.setattr(power_proof, "LINGER", 120.0)
    site.claim(0)
    site.run("start", 0)
    site.play(0, feeds=[])

    def dark():
        time.sleep(0.4)
        (site.folder / "run" / "fake-boots" / "board0").unlink()

    thread = threading.Thread(target=dark)
    thread.start()
    start = time.monotonic()
    result = site.run("stop", 0)
    thread.join()
    assert result["failed"] is False
    assert 0.3 < time.monotonic() - start < 60


def test_an_image_that_does_not_boot_on_a_board_that_stays_on(site, monkeypatch):
    """Lost: a board given back as sound although nobody can switch it off."""
    monkeypatch.setattr(Fake, "alive", lambda self, board, limit: True)
    site.claim(0)
    site.play(0, stall="nfs")
    result = site.run("start", 0, timeout=1)
    assert (result["blame"], site.record(0).state) == ("board", "error")
    assert "does not feed this board" in site.record(0).note


def test_alive_asks_a_real_address():
    """Lost: a board whose sshd is dead, but whose kernel lives, taken for one without power."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert ssh.alive("127.0.0.1", 0.2, port) is True, "it refuses, so it lives"
        server.listen()
        assert ssh.alive("127.0.0.1", 0.2, port) is True
    start = time.monotonic()
    with socket.socket() as server:
        # A full backlog answers nothing, as a board without power.
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting = [socket.socket() for _number in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        assert ssh.alive("127.0.0.1", 0.2, port) is False
        for one in waiting:
            one.close()
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("signs", "shown", "own"),
    [
        ([], presence.SILENT, False),
        (["an answer"], presence.OWN_KEY, True),
        (["an answer"], presence.ALIVE, True),
        (["an answer"], presence.OTHER_KEY, False),
        # it became dark meanwhile
        (["an answer"], presence.SILENT, False),
        # its console is a line of its own
        ([power_proof.GROWS], presence.SILENT, True),
        (["an answer", power_proof.GROWS], presence.OTHER_KEY, True),
    ],
)
def test_whose_signs_of_life_count(signs, shown, own):
    """Lost: another tenant's power; or the reboot of a board at whose address another machine answers."""
    assert power_proof.are_its_own(signs, shown) is own


@pytest.mark.parametrize("check", [False, True])
def test_a_console_that_goes_on_while_its_outlet_is_cycled(site, monkeypatch, check):
    """Lost: another tenant's power, by the reboot of a board without ssh that lives on."""
    site.claim(0)
    site.run("start", 0)
    site.play(0, stall="running")
    monkeypatch.setattr(power_proof.Silence, "life", lambda silence, over=None: [power_proof.GROWS])
    result = site.run("reboot", 0, how="hard", check=check)
    assert result["failed"] is not check
    assert site.power(0) == "on"
    if not check:
        assert "board0: not booted anew: off by pdu-a's read-back, but its console's log grows" in result["msg"]
        assert board(result)["power_proof"] == {"pdu": "on → off → on, read back", "board": power_proof.GROWS}
