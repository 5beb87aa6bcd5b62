# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver apc against emulated PDUs over real telnet, and against PDUs whose screens nobody has seen before."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    Busy,
    HeteroError,
    Lost,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_cli import CommandLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards, until

NUMBERS = [str(number) for number in range(1, 9)]
#: AOS 3 and 2 (`user` is no administrator, `direct` has no Control Outlet level), the newer and the older command line.
DIALECTS = ["menu", "menu-direct", "menu-user", "menu2", "menu2-direct", "menu2-user"]
DIALECTS += ["cli", "cli3", "cli-capital"]


def apc(pdu, seconds=60, **secrets):
    """A driver that stays in the menus where a PDU has them."""
    return Apc("pdu-t", {**pdu.settings, "command_line": False}, {**pdu.secrets, **secrets}, Deadline(seconds))


def either(pdu):
    """A driver that may go from the menus to the command line beside them."""
    return Apc("pdu-t", pdu.settings, pdu.secrets, Deadline(60))


def turned_on(session):
    return [outlet for outlet, state in session.status().items() if state == "on"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("count", [2, 8], ids=["some", "all"])
def test_switches_and_tells(emulated, tmp_path, dialect, count):
    """Without it, nobody could say that the right outlets, and only those, are switched in either dialect."""
    pdu = emulated(dialect=dialect, outlets=boards(tmp_path, *NUMBERS))
    wanted = NUMBERS[-count:]
    with apc(pdu) as session:
        assert session.dialect == dialect[: len(session.dialect)]
        assert session.status() == dict.fromkeys(NUMBERS, "off")
        answers = session.switch(wanted, "on")
        assert set(answers) == set(wanted)
        assert all(answer.accepted for answer in answers.values())
        assert all(re.search("[Ss]uccess|OK", answer.words) for answer in answers.values())
        assert session.status() == {outlet: "on" if outlet in wanted else "off" for outlet in NUMBERS}
        assert all(alive(pdu.outlets[outlet]["pid"]) for outlet in wanted)
        session.switch(wanted, "off")
        assert session.status() == dict.fromkeys(NUMBERS, "off")


@pytest.mark.parametrize("dialect", ["menu", "menu2-user", "cli", "cli3"])
def test_more_outlets_than_a_screen_has(emulated, dialect):
    """Without it, outlet 24 of a long PDU would be unknown, or its number typed into half a list."""
    pdu = emulated(dialect=dialect, outlet_count=48)
    everyone = [str(number) for number in range(1, 49)]
    with apc(pdu) as session:
        assert list(session.status()) == everyone
        session.switch(["2", "24", "48"], "on")
        assert [outlet for outlet, state in session.status().items() if state == "on"] == ["2", "24", "48"]
        assert all(answer.accepted for answer in session.switch(everyone, "on").values())
        assert session.status() == dict.fromkeys(everyone, "on")


def test_menus_have_a_command_line_beside_them(emulated):
    """Without it, eight outlets of a slow PDU of AOS 3 would take thirteen seconds instead of one."""
    pdu = emulated(dialect="menu", outlet_count=24)
    settings = {**pdu.settings, "command_line": True}
    with Apc("pdu-t", settings, pdu.secrets, Deadline(60)) as session:
        assert session.dialect == "cli"
        assert all(answer.accepted for answer in session.switch(NUMBERS, "on").values())
        assert session.status()["8"] == "on"
    assert (pdu.logouts, pdu.screens) == (1, 5)


def test_several_outlets_go_over_to_the_command_line(emulated):
    """Without it, eight outlets of a slow PDU of AOS 3 would take longer than any other client takes for one."""
    pdu = emulated(dialect="menu", outlet_count=24)
    with either(pdu) as session:
        assert session.dialect == "menu"
        assert all(answer.accepted for answer in session.switch(NUMBERS, "on").values())
        assert session.dialect == "cli"
        assert turned_on(session) == NUMBERS
        session.switch(["3", "4"], "off")
    assert (pdu.logins, pdu.logouts) == (2, 2)
    assert [outlet for outlet, seen in pdu.outlets.items() if seen["state"] == "on"] == ["1", "2", "5", "6", "7", "8"]


@pytest.mark.parametrize(("dialect", "outlets"), [("menu", ["2"]), ("menu", NUMBERS), ("menu2", ["2", "3"])])
def test_nobody_goes_over_for_nothing(emulated, dialect, outlets):
    """Without it, one outlet would cost two logins, and AOS 2 would count a bad one."""
    pdu = emulated(dialect=dialect)
    with either(pdu) as session:
        session.switch(outlets, "on")
        assert session.dialect == "menu"
        assert turned_on(session) == outlets
    assert (pdu.logins, pdu.bad_logins) == (1, 0)


def test_a_command_line_that_is_refused_leaves_the_menus(emulated):
    """Without it, firmware that knows no command line could not switch two outlets, or our tries would lock it."""
    pdu = emulated(dialect="menu", command_line=False)
    with either(pdu) as session:
        for state in ("on", "off", "on"):
            session.switch(["2", "3"], state)
        assert session.dialect == "menu"
        assert turned_on(session) == ["2", "3"]
    assert (pdu.logins, pdu.bad_logins) == (2, 0)


def test_a_command_line_of_other_outlets_leaves_the_menus(emulated, monkeypatch):
    """Without it, a unit that numbers its outlets in two ways would lose the power of somebody else's board."""
    pdu = emulated(dialect="menu")
    monkeypatch.setattr(CommandLine, "status", lambda self: {"1": "off"})
    with either(pdu) as session:
        session.switch(["2", "3"], "on")
        assert session.dialect == "menu"
        assert turned_on(session) == ["2", "3"]
    assert (pdu.logins, pdu.logouts) == (3, 3)


@pytest.fixture
def gone_over(emulated):
    """A PDU of AOS 3 that has obeyed by its command line, and a function: one more session with it."""
    pdu = emulated(dialect="menu", outlet_count=24)

    def again(work=turned_on, **settings):
        with session("pdu-t", {**pdu.settings, **settings}, pdu.secrets, Deadline(60), str(pdu.folder)) as opened:
            return work(opened), opened.dialect

    assert again(lambda opened: opened.switch(NUMBERS, "on"))[1] == "cli"
    assert (pdu.logins, pdu.logouts) == (2, 2)
    return pdu, again


def test_the_next_session_begins_where_the_last_one_ended(gone_over):
    """Without it, each request logs in twice, and one board waits for fourteen slow screens."""
    pdu, again = gone_over
    screens = pdu.screens
    assert again(lambda opened: opened.switch(["7"], "off"))[1] == "cli"
    assert (pdu.logins, pdu.bad_logins) == (3, 0)
    assert pdu.screens - screens <= 6
    assert again() == ([*NUMBERS[:6], "8"], "cli")


def test_a_command_line_that_is_gone_since_leaves_the_menus(gone_over):
    """Without it, a PDU whose firmware was changed would count a bad login in each session, and lock us out."""
    pdu, again = gone_over
    pdu.change(command_line=False)
    assert again() == (NUMBERS, "menu")
    assert again(lambda opened: opened.switch(["7"], "off"))[1] == "menu"
    assert pdu.logins == 4
    assert not list(pdu.folder.glob("pdu-dialects/*")), "or each session begins with a password that is refused"


def test_a_command_line_that_shows_other_outlets_since_is_not_believed(gone_over, monkeypatch):
    """Without it, a PDU that was replaced would lose the power of somebody else's board."""
    pdu, again = gone_over
    with monkeypatch.context() as patch:
        patch.setattr(CommandLine, "status", lambda self: {"1": "off"})
        assert again(lambda opened: opened.switch(["2", "3"], "off"))[1] == "menu"
        assert pdu.logins == 4, "the way over is not tried again"
    assert again() == (["1", *NUMBERS[3:]], "menu")


def test_who_says_which_dialect_has_that(gone_over):
    """Without it, `command_line: false` would change nothing at a PDU whose command line is broken."""
    _pdu, again = gone_over
    assert again(command_line=False)[1] == "menu"


def test_a_place_lost_on_the_way_over_is_waited_for(emulated):
    """Without it, a colleague who logs in between our two sessions would put boards into `error`."""
    pdu = emulated(dialect="menu")
    with session("pdu-t", pdu.settings, pdu.secrets, Deadline(60), str(pdu.folder)) as opened:
        opened.status()
        pdu.change(faults={"busy": 2})
        opened.switch(["2", "3"], "on")
        assert opened.dialect == "cli"
        assert turned_on(opened) == ["2", "3"]


def test_firmware_without_that_command_line_says_so(emulated):
    """Without it, who turned the option on would search a password that is right."""
    pdu = emulated(dialect="menu2")
    session = Apc("pdu-t", {**pdu.settings, "command_line": True}, pdu.secrets, Deadline(60))
    with pytest.raises(HeteroError, match="or unset its command_line") as caught:
        session.__enter__()
    assert not isinstance(caught.value, Busy)
    assert PASSWORD not in repr(caught.value.failure)


def test_a_locked_pdu_is_waited_for(emulated):
    """Without it, a colleague's three typing errors would put our boards into `error`, two minutes long."""
    pdu = emulated(lockout=0.5)
    for _bad in range(3):
        with pytest.raises(HeteroError, match=r"refuses user|closed the connection"), apc(pdu, password="no"):
            pytest.fail("logged in")
    with pytest.raises(Busy, match="has no place for us"), apc(pdu):
        pytest.fail("logged in")
    assert until(lambda: _lets_in(pdu))


def _lets_in(pdu):
    try:
        with apc(pdu):
            return True
    except Busy:
        return False


@pytest.mark.parametrize("dialect", ["menu", "cli"])
def test_logs_out_also_after_an_error(emulated, dialect):
    """Without it, an error of ours would lock the PDU for everybody for minutes."""
    pdu = emulated(dialect=dialect)
    for times in (1, 2):
        with pytest.raises(KeyError), apc(pdu) as session:
            session.status()["99"]
        assert pdu.logouts == times


def test_a_wrong_password_is_said_once_and_kept_secret(emulated):
    """Without it, a typo in a vault would look like a broken PDU, or lock it by repetition, or stand in a log."""
    pdu = emulated()
    with pytest.raises(HeteroError) as caught, apc(pdu, password="hush-hush-7"):
        pytest.fail("logged in")
    assert not isinstance(caught.value, (Busy, Lost))
    assert "pdu-t" in str(caught.value)
    assert "refuses user 'apc'" in str(caught.value)
    assert "credential of pdu-t" in str(caught.value)
    assert until(lambda: pdu.bad_logins == 1)
    assert "hush-hush-7" not in repr(caught.value.failure)


@pytest.mark.parametrize("refusal", ["tell", "close", "refuse"])
def test_a_taken_place_is_busy(emulated, refusal):
    """Without it, a colleague's login would be reported as a defect instead of being waited for."""
    pdu = emulated(faults={"refusal": refusal})
    with apc(pdu), pytest.raises(Busy) as caught, apc(pdu):
        pytest.fail("two users at once")
    assert "has no place for us" in str(caught.value)
    if refusal == "tell":
        assert "Another user is logged in" in str(caught.value)


def test_a_pdu_that_starts_is_busy(emulated):
    """Without it, a board behind a PDU that has just got power itself would be put to `error`."""
    pdu = emulated(faults={"initializing": 60})
    with pytest.raises(Busy, match="still initializing"), apc(pdu):
        pytest.fail("logged in")


@pytest.mark.parametrize("place", ["connect", "login"])
def test_a_hang_ends_at_the_deadline(emulated, place):
    """Without it, a dead PDU would hold a playbook for ever."""
    pdu = emulated(faults={"hang": place})
    start = time.monotonic()
    # On a busy machine its prompt may come as late as its time is up.
    said = r"(no answer within|its time was up before it could answer).*; last seen: .*\w"
    with pytest.raises(Lost, match=said) as caught, apc(pdu, seconds=0.5):
        pytest.fail("logged in")
    assert time.monotonic() - start < 60
    assert PASSWORD not in repr(caught.value.failure)


@pytest.mark.parametrize("dialect", ["menu", "cli"])
def test_logged_off_when_idle(emulated, dialect):
    """Without it, a batch that waits for slow relays would find its session gone and its outlets in error."""
    pdu = emulated(dialect=dialect, idle=2)  # a login on a busy machine is quicker
    deadline = Deadline(60)
    with session("pdu-t", pdu.settings, pdu.secrets, deadline, str(pdu.folder)) as opened:
        opened.status()
        assert until(lambda: pdu.screens > 0)  # counted at the end of a session
        assert opened.status() == dict.fromkeys(NUMBERS, "off")
    seen, alone = pdu.screens, apc(pdu)
    with alone:
        assert until(lambda: pdu.screens > seen)
        with pytest.raises(Lost, match="the session ended"):
            alone.status()


@pytest.mark.parametrize("dialect", ["menu", "cli"])
@pytest.mark.parametrize("fault", ["hang", "drop"])
def test_a_session_lost_in_a_command_is_said_so(emulated, dialect, fault):
    """Without it, a command that nobody knows the end of would count as done."""
    pdu = emulated(dialect=dialect, faults={fault: "command"})
    with pytest.raises(Lost), apc(pdu, seconds=1) as session:
        session.switch(["2"], "on")


def test_an_unknown_screen_is_shown(emulated):
    """Without it, a firmware that we do not know would leave its owner with nothing to report."""
    pdu = emulated(faults={"screen": f"------- Gadgets -------\n\n     1- Blender {PASSWORD}\n     2- Toaster\n"})
    for seconds in (2, 20, 200):  # a busy machine needs longer to reach that screen
        with pytest.raises(HeteroError) as caught, apc(pdu, seconds=seconds) as session:
            session.status()
        if "Gadgets" in str(caught.value):
            break
    assert "Gadgets" in str(caught.value)
    assert "2- Toaster" in caught.value.facts["screen"]
    assert PASSWORD not in repr(caught.value.failure)
    assert PASSWORD not in str(caught.value)


def test_the_password_is_in_no_argument(emulated):
    """Without it, every user of the machine could read the PDU's password in the process list."""
    pdu = emulated()
    with apc(pdu) as session:
        assert session.status()
        said = Path(f"/proc/{session._line._child.pid}/cmdline").read_text()
    assert "telnet" in said
    assert PASSWORD not in said


def test_nobody_there():
    """Without it, a wrong address would be told as a busy PDU or as a traceback."""
    with pytest.raises(HeteroError, match="cannot be reached") as caught:
        Apc("pdu-t", {"host": "no-such-host.invalid"}, {"username": "apc", "password": "apc"}, Deadline(60)).login()
    assert not isinstance(caught.value, Busy)


@pytest.mark.parametrize(
    ("settings", "secrets", "words"),
    [
        ({"host": "-e"}, {"username": "a"}, "is no host"),
        ({}, {"username": "a"}, "is no host"),
        ({"host": "h", "transport": "pigeon"}, {"username": "a"}, "no such transport"),
        ({"host": "h"}, {}, "no user name"),
    ],
)
def test_bad_settings_name_themselves(settings, secrets, words):
    """Without it, a host name that looks like an option would reach the telnet client as one."""
    with pytest.raises(BadInput, match=words):
        Apc("pdu-t", settings, secrets, Deadline(1)).login()


MAIN = "------- Control Console -------\n\n     1- Device Manager\n     2- Logout\n"
LIST = (
    "------- Outlets -------\n\n     1- Lamp ON          ON\n     2- a -> b (old)     OFF*\n"
    "     3- Master Control/Configuration\n"
)
ACTIONS = "------- Control -------\n\n     1- Immediate On\n     2- Delayed On\n     3- Immediate Off\n     4- Cancel\n"
#: Firmware that we were never shown: {name: (screens by name, {(screen, keys): next screen})}. "OK" confirms.
FIRMWARE = {
    "AOS 2, no level between outlet and actions": (
        {
            "main": MAIN,
            "devices": "------- Device Manager -------\n\n     1- Phase Monitor\n     2- Outlet Control\n",
            "list": LIST,
            "outlet": ACTIONS,
        },
        {("main", "1"): "devices", ("devices", "2"): "list", ("list", "2"): "outlet", ("outlet", "3"): "confirm"},
    ),
    "outlets at once in the device manager, Control Outlet third": (
        {
            "main": MAIN,
            "list": LIST,
            "outlet": "------- b -------\n\n  Outlet : 2\n\n  1- Rename\n  2- Sequence\n  3- Control Outlet 2\n",
            "control": ACTIONS,
        },
        {("main", "1"): "list", ("list", "2"): "outlet", ("outlet", "3"): "control", ("control", "3"): "confirm"},
    ),
    "a list of two pages": (
        {
            "main": MAIN,
            "manage": "------- Manage -------\n\n     1- Outlet Restriction\n     2- Outlet Control/Configuration\n",
            "list": "------- Outlets -------\n\n  1- Lamp     ON\n\n  Press <ENTER> to continue...\f  2- x     OFF\n",
            "outlet": ACTIONS,
        },
        {
            ("main", "1"): "manage",
            ("manage", "2"): "list",
            ("list", "2"): "outlet",
            ("outlet", "3"): "confirm",
        },
    ),
}


class Paper:
    """A PDU on paper: a server that knows screens and the ways between them, and nothing else."""

    def __init__(self, screens, ways, after=None, question="This will act on outlet {outlet}.", pauses=True):
        """
        :param after: the screen after an action, where it is not the one before.
        :param question: what it says before it asks for YES; `{outlet}` is what was typed at the list.
        :param pauses: whether it waits for <ENTER> after an action.
        """
        self.screens, self.ways, self.after, self.question, self.pauses = screens, ways, after, question, pauses
        self.confirmed, self.typed = 0, []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.settings = {"host": "127.0.0.1", "port": self._socket.getsockname()[1]}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._socket.close()
        self._thread.join(5)

    def _serve(self):
        with contextlib.suppress(OSError):
            line, _address = self._socket.accept()
            with line, line.makefile("rb", buffering=0) as self._file:
                line.settimeout(150)
                line.sendall(bytes([255, 251, 1, 255, 251, 3]) + b"\r\nUser Name : ")
                self._word()
                line.sendall(b"\r\nPassword  : ")
                self._word()
                self._talk(line)

    def _word(self):
        """Keys up to CR, or ESC or Ctrl-C alone; telnet's own commands are passed over."""
        word = b""
        while True:
            byte = self._file.read(1)
            if not byte:
                raise OSError("gone")
            if byte == b"\xff":
                self._file.read(2)
            elif byte == b"\r" or byte in (b"\x1b", b"\x03"):
                return (word or byte.strip()).decode()
            elif byte not in b"\0\n":
                word += byte

    def _talk(self, line):
        back = ["main"]
        while True:
            pages = self.screens[back[-1]].split("\f")
            for page in pages[:-1]:
                line.sendall(b"\r\n" + page.replace("\n", "\r\n").encode())
                self._word()
            line.sendall(b"\r\n" + pages[-1].replace("\n", "\r\n").encode() + b"\r\n\r\n> ")
            keys = self._word()
            self.typed.append((back[-1], keys))
            target = self.ways.get((back[-1], keys))
            if back[-1] == "main" and keys == "2":
                return
            if keys == "\x03":
                back = ["main"]
            elif keys == "\x1b" and not target:
                back = back[:-1] or ["main"]
            elif target == "confirm":
                chosen = [keys for screen, keys in self.typed if screen == "list"][-1:]
                line.sendall(f"\r\n{self.question.format(outlet=''.join(chosen))}\r\n".encode())
                line.sendall(b"\r\nEnter 'YES' to continue or <ENTER> to cancel : ")
                self.confirmed += self._word() == "YES"
                line.sendall(b"YES\r\n\r\nCommand successfully issued.\r\n")
                if self.pauses:
                    line.sendall(b"\r\nPress <ENTER> to continue...")
                    self._word()
                back = [self.after] if self.after else back
            elif target:
                back.append(target)


@pytest.mark.parametrize("firmware", FIRMWARE)
def test_the_screen_decides_the_way(firmware):
    """Without it, another firmware or a lesser account would get the wrong number typed into the wrong menu."""
    pdu = Paper(*FIRMWARE[firmware])
    try:
        with Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(60)) as session:
            assert session.status() == {"1": "on", "2": "off"}
            assert session.switch(["2"], "off")["2"].accepted
            assert session.status() == {"1": "on", "2": "off"}
        assert pdu.confirmed == 1
    finally:
        pdu.close()


@pytest.mark.parametrize(("after", "confirmed"), [("main", 2), ("odd", 1)])
def test_no_number_is_typed_into_another_menu(after, confirmed):
    """Without it, a firmware with another way back would get the next outlet's number in a wrong menu."""
    screens = {"main": MAIN, "list": LIST, "outlet": ACTIONS, "odd": "------- Odd -------\n\n     2- Erase all\n"}
    ways = {("main", "1"): "list", ("list", "1"): "outlet", ("list", "2"): "outlet", ("outlet", "3"): "confirm"}
    for seconds in (3, 30) if after == "odd" else (60,):  # a busy machine needs longer to reach the odd one
        pdu = Paper(screens, {**ways, ("odd", "\x1b"): "odd"}, after)
        try:
            session = Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(seconds))
            ends = pytest.raises(HeteroError) if after == "odd" else contextlib.nullcontext()
            with ends as told, contextlib.ExitStack() as stack:
                stack.enter_context(session).switch(["1", "2"], "off")
        finally:
            pdu.close()
        assert ("odd", "2") not in pdu.typed
        if after != "odd" or "2- Erase all" in str(told.value):
            break
    assert pdu.confirmed == confirmed
    assert after != "odd" or told.match(r"no list of outlets: .*2- Erase all")


def test_a_list_that_follows_an_action_at_once_is_used():
    """Without it, each outlet would cost two screens more, and on a slow PDU a rack its time."""
    screens = {"main": MAIN, "list": LIST, "outlet": ACTIONS}
    ways = {("main", "1"): "list", ("list", "1"): "outlet", ("list", "2"): "outlet", ("outlet", "3"): "confirm"}
    pdu = Paper(screens, ways, after="list", pauses=False)
    try:
        with Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(60)) as session:
            assert all(session.switch([outlet], "off")[outlet].accepted for outlet in ("1", "2"))
        switched = [("main", "1"), ("list", "1"), ("outlet", "3"), ("list", "2"), ("outlet", "3")]
        assert pdu.typed[: len(switched)] == switched
        assert pdu.confirmed == 2
    finally:
        pdu.close()


def test_an_account_that_may_not_switch_all_at_once():
    """Without it, who may switch each of the outlets, but not by the entry for all of them, could switch none."""
    whole = "------- Master Control -------\n\n     1- Status of all outlets\n"
    screens = {"main": MAIN, "list": LIST, "outlet": ACTIONS, "all": whole}
    ways = {("main", "1"): "list", ("list", "1"): "outlet", ("list", "2"): "outlet", ("outlet", "3"): "confirm"}
    pdu = Paper(screens, {**ways, ("list", "3"): "all"})
    try:
        with Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(60)) as session:
            assert {outlet: answer.accepted for outlet, answer in session.switch(["1", "2"], "off").items()} == {
                "1": True,
                "2": True,
            }
        assert pdu.confirmed == 2
        assert ("all", "1") not in pdu.typed
    finally:
        pdu.close()


def test_another_outlets_screen_stops_it():
    """Without it, a PDU whose list moved between two looks would cut the power of somebody else's board."""
    lamp = "------- Lamp -------\n\n     Outlet : 1\n\n     1- Immediate Off\n"
    screens = {"main": MAIN, "list": LIST, "outlet": lamp}
    pdu = Paper(screens, {("main", "1"): "list", ("list", "2"): "outlet", ("outlet", "1"): "confirm"})
    try:
        session = Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(60))
        with pytest.raises(HeteroError, match="no outlet 2"), session:
            session.switch(["2"], "off")
        assert pdu.confirmed == 0
    finally:
        pdu.close()


@pytest.mark.parametrize(
    ("question", "confirmed"),
    [
        ("Immediate Off: this will act on outlet 2 named 'Outlet 1'.", 1),
        ("Immediate Off: this will act on outlet 1 named 'Outlet 2'.", 0),
        ("Immediate Reboot: this will act on outlet 2 named 'Immediate Off'.", 0),
        ("Delayed Off", 0),
        ("Immediate Off: this will act on all outlets.", 0),
        ("Immediate Off", 0),  # of which outlet, no screen has said
    ],
)
def test_no_yes_to_another_question(question, confirmed):
    """Without it, a menu that moved under our hands would cut the power of another board."""
    screens = {"main": MAIN, "list": LIST, "outlet": ACTIONS}
    ways = {("main", "1"): "list", ("list", "2"): "outlet", ("outlet", "3"): "confirm"}
    pdu = Paper(screens, ways, question=question)
    try:
        session = Apc("pdu-t", pdu.settings, {"username": "apc", "password": PASSWORD}, Deadline(60))
        ends = contextlib.nullcontext() if confirmed else pytest.raises(HeteroError, match="no question for")
        with ends, session:
            session.switch(["2"], "off")
        assert pdu.confirmed == confirmed
    finally:
        pdu.close()
