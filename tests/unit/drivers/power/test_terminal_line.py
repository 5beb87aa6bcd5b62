# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a line to a PDU sends and reads, piece by piece, of a program that is played. Real ones: test_terminal.py."""

from __future__ import annotations

from types import SimpleNamespace

import pexpect
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import terminal


class Child:
    """A program with a terminal, which prints these pieces; None is silence, and ... its end."""

    def __init__(self, pieces):
        self.pieces, self.waits, self.sent, self.closed = list(pieces), [], [], []
        self.delaybeforesend, self.ptyproc = 0.05, SimpleNamespace(delayafterclose=0.1, delayafterterminate=0.1)

    def read_nonblocking(self, size, timeout):
        self.waits.append((size, timeout))
        piece = self.pieces.pop(0)
        if piece is None:
            raise pexpect.TIMEOUT("silence")
        if piece is ...:
            raise pexpect.EOF("the end")
        return piece

    def send(self, text):
        if self.sent == ["breaks"]:
            raise OSError(5, "Input/output error")
        self.sent.append(text)

    def close(self, force):
        self.closed.append(force)


@pytest.fixture
def line(monkeypatch):
    """A line on which this is printed, in these pieces; `line.ran` is how its program was run."""

    def make(*pieces, argv=("telnet", "-E", "h", "23"), seconds=60.0):
        child, ran = Child(pieces), []
        monkeypatch.setattr(terminal.pexpect, "spawn", lambda *words, **how: ran.append((words, how)) or child)
        one = terminal.Line("pdu-t", list(argv), "xyzzy", Deadline(seconds))
        one.child, one.ran = child, ran
        return one

    return make


@pytest.mark.parametrize(("program", "raw"), [("telnet", None), ("ssh", terminal._raw)])
def test_how_its_program_is_run(line, program, raw):
    """Lost: a key that the terminal obeys; letters that are none; or a twentieth of a second for each word typed."""
    one = line(argv=(program, "-x", "h"))
    how = dict(encoding="utf-8", codec_errors="replace", echo=False, use_poll=True, preexec_fn=raw)
    assert one.ran == [((program, ["-x", "h"]), how)]
    assert one.child.delaybeforesend is None
    assert (one.child.ptyproc.delayafterclose, one.child.ptyproc.delayafterterminate) == (0.02, 0.02)
    assert (one.screen, one.heard, one.name, one.marks) == ("", "", "pdu-t", terminal.MARKS)
    one.close()
    assert one.child.closed == [True]


def test_a_program_that_is_not_there_is_named(monkeypatch):
    """Lost: which package to install, and where."""

    def spawn(*_argv, **_how):
        raise pexpect.ExceptionPexpect("The command was not found")

    monkeypatch.setattr(terminal.pexpect, "spawn", spawn)
    with pytest.raises(HeteroError, match="pdu-t: program telnet is not installed: install telnet"):
        terminal.Line("pdu-t", ["telnet"], "xyzzy", Deadline(60))
    monkeypatch.setattr(terminal, "pexpect", None)
    with pytest.raises(HeteroError, match="pdu-t: Python library pexpect is missing: install python3-pexpect on"):
        terminal.Line("pdu-t", ["telnet"], "xyzzy", Deadline(60))


def test_what_is_typed(line):
    """Lost: the key that ends a word; or the password, which would be looked for on the screen as an echo is."""
    one = line()
    for text, more, typed in [
        ("1", {}, "1"),
        ("xyzzy", {"secret": True}, None),
        ("", {}, None),
        (terminal.CTRL_C, {"end": ""}, None),
    ]:
        one.send(text, **more)
        assert one._typed == typed
    assert one.child.sent == ["1\r", "xyzzy\r", "\r", "\x03"]
    assert terminal.ESC == "\x1b"
    one.child.sent[:] = ["breaks"]
    with pytest.raises(Lost, match="pdu-t: the session ended; it had said nothing") as caught:
        one.send("1")
    assert caught.value.ended is True


def test_a_screen_comes_in_pieces_and_ends_with_silence(line):
    """Lost: the rest of a screen that paused at a prompt in its middle; or ten seconds for each that did not."""
    one = line("\r\nUser", " Name : ", "\r\nagain\r\nUser Name : ", None)
    assert one.read("password", "user") == ("user", "\nUser Name : \nagain\nUser Name : ")
    sizes, waits = zip(*one.child.waits)
    assert set(sizes) == {4096}
    assert all(1 < wait <= 10 for wait in waits[:2])
    assert waits[2:] == (0.05, 0.05)
    assert one.screen == one.heard == "\nUser Name : \nagain\nUser Name : "


@pytest.mark.parametrize("echo", ["\r\n", ""])
def test_what_is_typed_is_left_out_where_it_comes_back(line, echo):
    """Lost: which words are the PDU's; and, of one that has never echoed, half a second for each screen."""
    one = line(f"1{echo}" if echo else "", "\r\nabc\r\napc>", None, "\r\nxyz\r\napc>", None)
    one.send("1")
    assert one.read("cli") == ("cli", "\n\nabc\napc>" if echo else "\nabc\napc>")
    # of one that echoes, what comes without an echo may be old
    one.child.waits.clear()
    one.child.pieces[:] = ["\r\nxyz\r\napc>", None]
    one.send("2")
    assert one.read("cli")[1] == "\nxyz\napc>"
    assert one.child.waits[1][1] == (0.5 if echo else 0.05)
    # and nothing was typed since
    one.child.waits.clear()
    one.child.pieces[:] = ["\r\n2\r\napc>", None]
    assert one.read("cli")[1] == "\n2\napc>"
    assert one.child.waits[1][1] == 0.05


def test_what_a_screen_is_waited_for_ends(line):
    """Lost: the play's time, to a PDU that is silent; and what it had said."""
    one = line("Welcome", None)
    with pytest.raises(Lost, match=r"pdu-t: no answer within \d+\.\d s; last seen: Welcome: ") as caught:
        one.read("menu")
    assert (caught.value.ended, one.heard) == (False, "Welcome")
    one = line("Bye", ...)
    with pytest.raises(Lost, match=r"pdu-t: the session ended; last seen: Bye: ") as caught:
        one.read("menu")
    assert caught.value.ended is True
    # another deadline; what was heard for the question before is none of this one
    one.heard, one.child.pieces = "old", [None]
    with pytest.raises(Lost, match="its time was up before it could answer; last seen: Bye"):
        one.read("menu", within=Deadline(0.1))
    assert one.heard == ""


@pytest.mark.parametrize("more", [0, 1])
def test_who_says_too_much_is_not_listened_to(line, more):
    """Lost: the machine's memory, to whatever answers at that address; or the longest list that there is."""
    one = line("x" * (1 << 18) + "y" * more, ...)
    words = "says more than 262144 characters" if more else "the session ended"
    with pytest.raises(HeteroError, match=words) as caught:
        one.read("menu")
    assert not more or caught.value.facts["screen"] == "x" * 1999 + "y"


PAGE, MENU = " 1- Lamp\r\nPress <ENTER> to continue...", " 2- Fan\r\n> "


def test_all_pages_are_one_screen(line):
    """Lost: the outlets of all pages but the last."""
    one = line(PAGE, None, MENU, None)
    mark, shown = one.read_pages("menu")
    assert (mark, shown) == ("menu", " 1- Lamp\nPress <ENTER> to continue... 2- Fan\n> ")
    assert (one.screen, one.child.sent) == (shown, ["\r"])


def test_a_list_without_end_is_not_read_for_ever(line):
    one = line(*[PAGE, None] * 40)
    with pytest.raises(HeteroError, match="its screen has no end after 32 pages"):
        one.read_pages("menu")
    assert one.child.sent == ["\r"] * 32


def test_a_login_amid_pages_is_one_where_it_was_asked_for(line):
    """Lost: that a session is over; or the retry of a user name that the set-up of the session has eaten."""
    assert line("User Name : ", None).read_pages("user")[0] == "user"
    with pytest.raises(Lost, match="it logged us off"):
        line("User Name : ", None).read_pages("menu")


def test_the_end_of_a_session_is_waited_for(line):
    """Lost: the PDU's one place, which it gives to nobody until it has seen that we are gone."""
    one = line("Bye", "\r\n", ..., "never read")
    one.hung_up(Deadline(60))
    assert one.child.pieces == ["never read"]
    one = line("Bye", None, "never read")
    one.hung_up(Deadline(60))
    assert one.child.pieces == ["never read"]
    one = line("never read")
    one.hung_up(Deadline(0))
    assert one.child.pieces == ["never read"]
    one = line("x" * (1 << 17), "x" * (1 << 17), "never read", ...)
    one.hung_up(Deadline(60))
    assert one.child.pieces == ["never read", ...]
    assert one.child.waits[0][0] == 4096
    assert 50 < one.child.waits[0][1] <= 60


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"transport": "pigeon", "host": "h"}, r"no such transport \(known: telnet, ssh\): correct its transport"),
        ({"host": "-h"}, "'-h' is no host: give its name or address"),
        ({}, "'' is no host: give its name or address"),
    ],
)
def test_settings_that_open_no_session(settings, words):
    with pytest.raises(HeteroError, match=f"pdu-t: {words}"):
        terminal.argv("pdu-t", settings, "apc")
