# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's PDU against the process table: power is what runs. Foreign clients are in test_foreign_clients.py."""

from __future__ import annotations

import re
import signal
import socket
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards, until


def talk(pdu, *keys, wait=20.0, sees=b""):
    """Connect, answer each prompt with the next of `keys`, and return all that came, and whether it ended the talk.

    :param wait: longest silence (s) before this end is the one that leaves.
    :param sees: this end leaves at once where this came.
    """
    said = b""
    with socket.create_connection(("127.0.0.1", pdu.port), 5) as line:
        line.settimeout(wait)
        for key in keys:
            time.sleep(0.05)
            line.sendall(key)
        try:
            while not sees or sees not in said:
                data = line.recv(65536)
                if not data:
                    return said, True
                said += data
        except TimeoutError:
            pass
    return said, False


def login(*keys):
    return [b"apc\r\n", PASSWORD.encode() + b"\r\n", *keys]


def test_console_keeps_its_lines_over_power_cycles(emulated, tmp_path):
    """Without it, the evidence of a board that did not boot would be gone with its next power-on."""
    pdu = emulated(dialect="cli", outlets=boards(tmp_path, "1"))
    log = tmp_path / "1.log"
    for command, sign in ((b"olOn 1\r", 1), (b"olOff 1\r", 0), (b"olOn 1\r", 2)):
        talk(pdu, *login(command, b"exit\r"))
        assert until(lambda sign=sign: not sign or log.read_text().count("power good") == sign)
    lines = log.read_text().splitlines()
    stamp = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (.*)")
    words = ["--- power on ---", "power good", "--- power off ---", "--- power on ---", "power good"]
    assert [stamp.fullmatch(line).group(1) for line in lines] == words


def test_a_board_that_crashes_leaves_its_outlet_on(emulated, tmp_path):
    """Without it, a crashed board would look as if somebody had cut its power."""
    log = tmp_path / "crash.log"
    outlets = {"2": {"argv": ["sh", "-c", "echo last words; exit 3"], "console": str(log)}}
    pdu = emulated(dialect="cli", outlets=outlets)
    talk(pdu, *login(b"olOn 2\r", b"exit\r"))
    assert until(lambda: pdu.outlets["2"] == {"state": "on", "pid": None})
    assert "last words" in log.read_text()
    assert "ended by itself (3)" in log.read_text()


def test_a_machine_that_resets_itself_is_a_new_process(emulated, tmp_path):
    """Lost: minutes, and on a busy machine the whole patience, at each reboot that a board is told by ssh."""
    machine = ["qemu-system-x86_64", "-machine", "pc", "-accel", "tcg", "-m", "32", "-nodefaults", "-display", "none"]
    outlets = {"2": {"argv": [*machine, "-boot", "reboot-timeout=1000"], "console": str(tmp_path / "resets.log")}}
    pdu = emulated(dialect="cli", outlets=outlets)
    talk(pdu, *login(b"olOn 2\r", b"exit\r"))
    seen = set()
    assert until(lambda: seen.add(pdu.outlets["2"]["pid"]) or len(seen - {None}) > 1)
    assert pdu.outlets["2"]["state"] == "on"
    talk(pdu, *login(b"olOff 2\r", b"exit\r"))
    assert pdu.outlets["2"] == {"state": "off", "pid": None}
    assert "ended by itself" not in (tmp_path / "resets.log").read_text()


def test_immediate_reboot_leaves_an_outlet_that_is_off_off(emulated):
    """Real units do so; a lab that did not would hide that a cycle must be off and then on."""
    pdu = emulated(dialect="menu")
    keys = login(b"1\r", b"2\r", b"1\r", b"4\r", b"1\r", b"3\r", b"YES\r", b"\r", b"\x03", b"4\r")
    said, _closed = talk(pdu, *keys, sees=b"successfully issued.")
    assert b"Command successfully issued." in said
    assert pdu.outlets["4"]["state"] == "off"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_boards_end_with_their_pdu(emulated, tmp_path, number):
    """Without it, `make lab-down` or a crash of the PDU would leave machines running that nobody can switch off."""
    pdu = emulated(outlets={"1": {**boards(tmp_path, "1")["1"], "state": "on"}})
    pid = pdu.outlets["1"]["pid"]
    assert alive(pid)
    pdu.stop(number)
    assert until(lambda: not alive(pid))


@pytest.mark.parametrize(
    ("refusal", "words"), [("tell", b"Another user is logged in"), ("close", b""), ("refuse", None)], ids=str
)
def test_one_user_at_a_time(emulated, refusal, words):
    """Without it, nothing would show what the product does when a colleague is logged in at the PDU."""
    pdu = emulated(faults={"refusal": refusal})
    with socket.create_connection(("127.0.0.1", pdu.port), 5) as first:
        assert first.recv(100)
        if words is None:
            with pytest.raises(ConnectionRefusedError):
                talk(pdu)
        else:
            said, closed = talk(pdu)
            assert closed
            assert words in said

    def free():
        try:
            return b"User Name" in talk(pdu, sees=b"User Name")[0]
        except ConnectionRefusedError:
            return False

    assert until(free)


def test_idle_users_are_logged_off(emulated):
    """Without it, one forgotten terminal would lock the lab's PDU for ever, which real units do not."""
    pdu = emulated(idle=1)
    start = time.monotonic()
    _said, closed = talk(pdu, *login(), wait=60.0)
    assert closed
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("end", [b"\r\n", b"\r\0", b"\r", b"\n"], ids=["crlf", "crnul", "cr", "lf"])
def test_every_end_of_line_counts(emulated, end):
    """Without it, a telnet client of another make could not log in."""
    pdu = emulated(dialect="cli")
    said, closed = talk(pdu, b"apc" + end, PASSWORD.encode() + end, b"olStatus 1" + end, b"exit" + end)
    assert closed
    assert said.count(b" 1: Outlet 1: Off") == 1
    assert PASSWORD.encode() not in said


def test_an_interrupt_shows_the_main_menu_after_its_timing_mark(emulated):
    """Without it, a client that sends Ctrl-C as an interrupt would throw the main menu away and wait for ever."""
    pdu = emulated()
    said, _closed = talk(pdu, *login(b"1\r", bytes([255, 244, 255, 253, 6]), b"4\r"), sees=b"Logging out")
    after = said.split(b"Device Manager --", 1)[1]
    assert after.index(bytes([255, 252, 6])) < after.index(b"Control Console")


def test_three_bad_passwords_lock_it(emulated):
    """Without it, nothing would show what our own repetition of a wrong password does to a real unit."""
    pdu = emulated(lockout=3)
    # the prompt is there again once the password was looked at
    assert not talk(pdu, b"apc\r", b"wrong\r", sees=b"*****\r\n\rUser Name : ")[1]
    said, closed = talk(pdu, *[b"apc\r", b"wrong\r"] * 2)
    assert closed
    assert said.count(b"User Name :") == 2
    assert b"Control Console" not in said
    assert talk(pdu) == (b"", True)

    def lets_in():
        try:
            return b"Control Console" in talk(pdu, *login(), sees=b"Control Console")[0]
        except OSError:
            return False

    assert until(lets_in)


def test_a_switch_for_users_that_are_not_there(emulated):
    """Without it, the lab could not play a PDU that is taken for a while, or by somebody who never leaves."""
    pdu = emulated(faults={"busy": 1})
    assert b"Another user" in talk(pdu)[0]
    assert b"User Name" in talk(pdu, sees=b"User Name")[0]
    pdu = emulated(faults={"busy": True, "refusal": "close"})
    assert [talk(pdu) for _user in range(3)] == [(b"", True)] * 3
